"""Which languages a checkpoint says that it is for."""

from __future__ import annotations

from pathlib import Path

from embaudit.checkpoint.card import front_matter

MULTILINGUAL = "multilingual"


def declared_languages(folder: Path) -> frozenset[str] | None:
    """The codes in its model card's ``language``, without regions; None if it names none, or cannot be read."""
    try:
        found = front_matter(folder / "README.md").get("language")
    except Exception:  # broken YAML raises several classes, and is a finding of integrity, not of this
        return None
    names = [found] if isinstance(found, str) else list(found or [])
    return frozenset(str(name).lower().partition("-")[0] for name in names) or None


def is_declared(language: str, declared: frozenset[str] | None) -> bool | None:
    """Whether it is for this language; None if it does not say."""
    return None if declared is None else MULTILINGUAL in declared or language in declared
