"""Files and folders that are complete or absent: written to a hidden sibling, synced, and renamed.

Whoever has the old one open keeps it; whoever opens the name gets the old one or the new one, never half of either.
A kill leaves a hidden ``.NAME.<hex>.partial`` and nothing else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replace_atomically(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """A path to write a file, folder or link to; it takes the place of ``path`` when the block ends without an error.

    Args:
        path: what is replaced; its folder is created if need be. A folder can only take the place of an empty one.
        mode: permissions of the new file.

    Raises:
        OSError: if it cannot be written; ``path`` is then as it was, and the sibling is gone.
    """
    with temporary_sibling(path) as partial:
        yield partial
        move_into_place(partial, path, mode=mode)


@contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """A hidden path next to ``path``, where nothing is yet; a file or folder made there is deleted at the end."""
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
    """A new hidden folder next to ``path``, deleted with its content: for a DuckDB file that is made in it under its
    final name, with the log and spill files that DuckDB writes next to it."""
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
