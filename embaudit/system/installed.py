"""Content keys: the same question has the same key on any machine, in any run.

A measure's key covers everything that its values depend on (checkpoint, inputs, settings, dtype, device kind,
seed, version) and nothing else; changing any part recomputes exactly what depends on it.

What is installed: what other packages bring by entry points, or what is wrong with it; and code, by its digest.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from embaudit.words.errors import UsageError

KEY_DIGITS = 16


def content_key(**parts: Any) -> str:
    """16 hex digits of the sha256 of the parts' canonical JSON; parts must be JSON values."""
    canonical = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:KEY_DIGITS]


Brought = TypeVar("Brought")


def installed(group: str, kind: type[Brought], what: str) -> Iterator[tuple[EntryPoint, Brought]]:
    """What packages bring for a group, by name, so that their order does not depend on the order of installation.

    Args:
        kind: the class that it must be of.
        what: it is called, for a message: ``measure``.

    Raises:
        UsageError: if one cannot be imported, or is something else.
    """
    for entry in _entries(group, tuple((place, _state(place)) for place in sys.path)):
        try:
            found = entry.load()
        except Exception as error:
            raise unusable(entry, what, f"{type(error).__name__}: {error}") from error
        if not isinstance(found, kind):
            raise unusable(entry, what, f"{entry.value} is a {type(found).__name__}, not a {kind.__name__}")
        yield entry, found


@cache
def _entries(group: str, places: tuple[tuple[str, object], ...]) -> tuple[EntryPoint, ...]:
    """Those of a group, by name. Every package is read for them: once, for as long as places hold what they held."""
    return tuple(sorted(entry_points(group=group), key=lambda entry: entry.name))


def _state(place: str) -> object:
    """Of a place of ``sys.path``: another one if something was put into it, or if the current folder is another."""
    with suppress(OSError):
        found = Path(place).stat()
        return found.st_dev, found.st_ino, found.st_mtime_ns
    return None


def unusable(entry: EntryPoint, what: str, why: str) -> UsageError:
    package = entry.dist.name if entry.dist else entry.module
    return UsageError(
        f"The {what} {entry.name} of the package {package} cannot be used: {why}.",
        next_step=f"Repair the package, or uninstall it: pip uninstall {package}",
    )


@cache
def code_digest(*packages: str) -> str:
    """sha256 of all code of these packages: whatever it computes may be another with any change of it."""
    code = hashlib.sha256()
    for package in packages:
        for path in sorted(Path(str(files(package))).rglob("*.py")):
            code.update(path.read_bytes())
    return code.hexdigest()
