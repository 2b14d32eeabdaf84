"""Copies of stores that their own library would write to, or that another program has open: nobody's is touched."""

from __future__ import annotations

import atexit
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from embaudit.corpora.openers import os_failure
from embaudit.stores.place import StorePlace
from embaudit.stores.store import explained
from embaudit.words.errors import StorageError, UsageError

# Pages of a database that are copied at a time, and how often the copy may begin anew because others wrote to it.
PAGES, RESTARTS = 2_000, 5
CHECK = "Check the file: sqlite3 FILE 'PRAGMA integrity_check'"


def copied(path: Path, beside: Sequence[str] = ()) -> Path:
    """A file as it may be read: itself, or a copy if others of these endings are beside it and not empty."""
    sides = [path.with_name(path.name + ending) for ending in beside]
    sides = [side for side in sides if side.exists() and side.stat().st_size]
    if not sides:
        return path.absolute()
    return copy_of([path, *sides], str(path)) / path.name


def read_only(file: Path, *, is_original: bool) -> sqlite3.Connection:
    """A connection to a SQLite file that cannot write; of an original, one that makes no file and no lock beside it."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable={int(is_original)}", uri=True)


@contextmanager
def connected(place: StorePlace, file: Path, next_step: str) -> Iterator[sqlite3.Connection]:
    """A connection to a store's SQLite file, or to its copy, that writes nothing; its errors name the store."""
    is_original = file.is_relative_to(place.path.absolute())
    with explained(place.shown, next_step, sqlite3.Error), closing(read_only(file, is_original=is_original)) as own:
        yield own


def copy_of(files: Sequence[Path], shown: str, more_bytes: int = 0) -> Path:
    """A temporary folder with copies of files or folders, deleted when the program ends.

    Args:
        more_bytes: that are to be written to it.

    Raises:
        StorageError: if there is no room.
        UsageError: if one changes while it is copied.
        CorpusError: if one cannot be read.
    """
    folder = Path(tempfile.mkdtemp(prefix="embaudit-store-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    before = signature(files)
    needs, has = more_bytes + sum(size for _, size, _ in before), shutil.disk_usage(folder).free
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


def database_copy(file: Path, shown: str) -> Path:
    """A temporary folder with a copy of a SQLite file that others may write to, as of one moment.

    It is copied by SQLite itself, a part at a time, so that a program that has it open waits for none of it.

    Raises:
        StorageError: if there is no room.
        UsageError: if it changes all the time.
        CorpusError: if it cannot be read.
    """
    with file.open("rb") as opened:
        is_logged = opened.read(20)[18:20] == b"\2\2"
    if is_logged or any(file.with_name(file.name + ending).exists() for ending in ("-wal", "-journal")):
        # Read in place, SQLite would write to what is beside it.
        sides = [file.with_name(file.name + ending) for ending in ("-wal", "-journal")]
        return copy_of([file, *(side for side in sides if side.exists())], shown)
    folder = copy_of([], shown, file.stat().st_size)
    last, restarts = math.inf, 0

    def watch(status: int, remaining: int, total: int) -> None:
        nonlocal last, restarts
        restarts += remaining > last
        last = remaining
        if restarts > RESTARTS:
            raise changed(shown)

    with (
        explained(shown, CHECK, sqlite3.Error),
        closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(folder / file.name)) as target,
    ):
        source.backup(target, pages=PAGES, progress=watch, sleep=0.001)
    return folder
