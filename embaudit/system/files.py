"""Files and folders that are complete or absent: written to a hidden sibling, synced, and renamed.

A process that has the old file open keeps it; one that opens the path gets the old or the new file, never a partial
one. A killed process leaves at most a hidden ``.NAME.<hex>.partial``.

And a home folder for a process that has none: libraries keep caches and settings in ``~``, and fail without it.
Containers run with a user id that no account belongs to; ``cron`` and some supervisors unset ``HOME``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


def missing_home() -> dict[str, str]:
    """``HOME`` in the folder of results, if nothing says where this user's home is; otherwise empty."""
    try:
        Path.home()
    except RuntimeError:
        # As ``embaudit.system.settings`` reads it, which imports pydantic; this is asked by every command.
        return {"HOME": str(Path(os.environ.get("EMBAUDIT_HOME") or ".embaudit").absolute())}
    return {}


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
