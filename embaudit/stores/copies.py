"""Copies of stores that their own library would write to, or that another program has open: nobody's is touched."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from embaudit.corpora.openers import os_failure
from embaudit.errors import StorageError, UsageError


def copied(path: Path, beside: Sequence[str] = ()) -> Path:
    """A file as it may be read: itself, or a copy if others of these endings are beside it and not empty."""
    sides = [path.with_name(path.name + ending) for ending in beside]
    sides = [side for side in sides if side.exists() and side.stat().st_size]
    if not sides:
        return path.absolute()
    return copy_of([path, *sides], str(path)) / path.name


def copy_of(files: Sequence[Path], shown: str) -> Path:
    """A temporary folder with copies of files or folders, deleted when the program ends.

    Raises:
        StorageError: if there is no room.
        UsageError: if one changes while it is copied.
        CorpusError: if one cannot be read.
    """
    folder = Path(tempfile.mkdtemp(prefix="embaudit-store-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    before = signature(files)
    needs, has = sum(size for _, size, _ in before), shutil.disk_usage(folder).free
    if needs > has:
        raise StorageError(
            f"A copy of {shown} is read, since its own library writes to what it opens: that needs "
            f"{needs / 2**30:.1f} GiB, and {folder.parent} has {has / 2**30:.1f}.",
            kept="Nothing was changed.",
            next_step="Name a larger folder for temporary files: TMPDIR=FOLDER",
        )
    try:
        for file in files:
            if file.is_dir():
                shutil.copytree(file, folder / file.name, symlinks=False)
            else:
                shutil.copyfile(file, folder / file.name)
    except OSError as error:
        raise os_failure(shown, error) from error
    if signature(files) != before:
        raise changed(shown)
    return folder


def signature(files: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Name, size and time of every file, by which a change is told."""
    found = []
    for file in files:
        for one in sorted(file.rglob("*")) if file.is_dir() else [file]:
            try:
                stat = one.stat()
            except OSError:
                continue
            if one.is_file():
                found.append((str(one), stat.st_size, stat.st_mtime_ns))
    return found


def changed(shown: str) -> UsageError:
    return UsageError(
        f"{shown} changed while it was read.",
        kept="Nothing was concluded: rows of two states would be compared.",
        next_step="Run the command again when nothing writes to it, or name a copy.",
    )
