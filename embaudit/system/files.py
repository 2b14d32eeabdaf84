"""Files and folders that are complete or absent: written to a hidden sibling, synced, and renamed.

A process that has the old file open keeps it; one that opens the path gets the old or the new file, never a partial
one. A killed process leaves at most a hidden ``.NAME.<hex>.partial``.

Content keys: the same question has the same key on any machine, in any run.

A measure's key covers everything that its values depend on (checkpoint, inputs, settings, dtype, device kind,
seed, version) and nothing else; changing any part recomputes exactly what depends on it.

What is installed: what other packages bring by entry points, or what is wrong with it; and code, by its digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from embaudit.words.errors import UsageError


@contextmanager
def replace_atomically(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """A path to write a file, folder or link to; it replaces ``path`` when the block ends without an error.

    Args:
        path: what is replaced; its parent is created if necessary. A folder can only replace an empty one.
        mode: permissions of the new file.

    Raises:
        OSError: if it cannot be written; ``path`` is then unchanged, and the sibling is deleted.
    """
    with temporary_sibling(path) as partial:
        yield partial
        move_into_place(partial, path, mode=mode)


@contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """An unused hidden path next to ``path``; whatever is created there is deleted at the end."""
    sibling = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    sibling.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield sibling
    finally:
        if sibling.is_dir() and not sibling.is_symlink():
            shutil.rmtree(sibling, ignore_errors=True)
        else:
            with suppress(OSError):
                sibling.unlink(missing_ok=True)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A new hidden folder next to ``path``, deleted at the end: for a DuckDB file and its log and spill files."""
    with temporary_sibling(path) as folder:
        folder.mkdir()
        yield folder


def move_into_place(made: Path, path: Path, *, mode: int | None = None) -> None:
    """Sync a finished file, folder or link of the same file system and rename it to ``path``."""
    if mode is not None:
        made.chmod(mode)
    if not made.is_symlink():
        for part in made.rglob("*") if made.is_dir() else ():
            _sync(part)
        _sync(made)
    made.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        # Some network file systems cannot sync a folder.
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)


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
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            found = entry.load()
        except Exception as error:
            raise unusable(entry, what, f"{type(error).__name__}: {error}") from error
        if not isinstance(found, kind):
            raise unusable(entry, what, f"{entry.value} is a {type(found).__name__}, not a {kind.__name__}")
        yield entry, found


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
