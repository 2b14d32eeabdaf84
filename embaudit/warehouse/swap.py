"""Replaces exports atomically while others read the previous one; one export per destination at a time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from embaudit.system.files import move_into_place, replace_atomically, temporary_folder
from embaudit.words.errors import StorageError

CURRENT = "current"
VERSION_PREFIX = "export-"
# A partial file may belong to a running export if it is younger than this.
ABANDONED_SECONDS = 6 * 3600.0


@contextmanager
def new_file(destination: Path) -> Iterator[Path]:
    """A path to write a new DuckDB file to; at the end it is made read-only and moved to ``destination``."""
    with temporary_folder(destination) as folder:
        made = folder / destination.name
        yield made
        move_into_place(made, destination, mode=0o444)
    # The log of an old copy opened for writing: DuckDB would apply it to the new file.
    destination.with_name(f"{destination.name}.wal").unlink(missing_ok=True)


@contextmanager
def new_version(destination: Path, keep: int) -> Iterator[Path]:
    """A folder to write to; at the end ``destination/current`` points to it, and the ``keep`` newest are kept."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    version = destination / f"{VERSION_PREFIX}{stamp}"
    with replace_atomically(version) as made:
        made.mkdir()
        yield made
    with replace_atomically(destination / CURRENT) as link:
        link.symlink_to(version.name)
    for old in sorted(destination.glob(f"{VERSION_PREFIX}*"))[:-keep]:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def one_at_a_time(destination: Path, wait_seconds: float) -> Iterator[None]:
    """Serialise exports to one destination, so that an older state never replaces a newer one."""
    lock = FileLock(destination.parent / f".{destination.name}.lock")
    try:
        lock.acquire(wait_seconds)
    except Timeout as error:
        raise StorageError(
            f"Another process has been exporting to {destination} for {wait_seconds:.0f} seconds.",
            kept="The earlier copy is unchanged.",
            next_step="Try again when it has finished.",
        ) from error
    try:
        yield
    finally:
        lock.release()


def abandoned(destination: Path) -> list[Path]:
    """Partial files and folders of killed exports to ``destination`` or names starting with it."""
    oldest = time.time() - ABANDONED_SECONDS
    partial = destination.parent.glob(f".{destination.name}*.partial")
    return [path for path in partial if path.stat().st_mtime < oldest]
