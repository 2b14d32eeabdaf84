"""The name that a mistyped one was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest to ``name``, if one is near at all."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the closest, to be followed by another sentence; empty if none is near."""
    near = closest(name, known)
    return f"Did you mean {near}? " if near else ""


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the closest, or else all that there are."""
    names = list(known)
    near = closest(name, names)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(names)}"
