"""A file or folder that is replaced as a whole: made beside its place, synced, and put there in one step.

Whoever has the old one open keeps it; whoever opens the name gets the old one or the new one, never half of either.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from embaudit.errors import StorageError

CURRENT = "current"
VERSION_PREFIX = "export-"
# What a killed export leaves beside its place is younger than this while the export may still be running.
ABANDONED_SECONDS = 6 * 3600.0


@contextmanager
def new_file(destination: Path) -> Iterator[Path]:
    """A path to write the new file to; at the end it stands at ``destination``, for reading only."""
    # A folder of its own takes what DuckDB lays beside a database while it writes.
    with _beside(destination.parent, destination.name) as folder:
        made = folder / destination.name
        yield made
        made.chmod(0o444)
        _sync(made)
        made.replace(destination)
        _sync(destination.parent)
    # Of a copy that somebody opened for writing: DuckDB would take it for the new file's.
    destination.with_name(f"{destination.name}.wal").unlink(missing_ok=True)


@contextmanager
def new_version(destination: Path, keep: int) -> Iterator[Path]:
    """A folder to write into; at the end ``destination/current`` leads to it, and the ``keep`` newest stay."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    version = destination / f"{VERSION_PREFIX}{stamp}"
    with _beside(destination, version.name) as folder:
        made = folder / version.name
        made.mkdir()
        yield made
        for file in sorted(made.rglob("*")):
            _sync(file)
        _sync(made)
        made.rename(version)
        link = folder / CURRENT
        link.symlink_to(version.name)
        link.replace(destination / CURRENT)
        _sync(destination)
    for old in sorted(destination.glob(f"{VERSION_PREFIX}*"))[:-keep]:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def one_at_a_time(destination: Path, wait_seconds: float) -> Iterator[None]:
    """Exports to one place queue: an older state must not replace a newer one."""
    lock = destination.parent / f".{destination.name}.lock"
    deadline = time.monotonic() + wait_seconds
    with lock.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise StorageError(
                        f"Another process exports to {destination}, and did so for {wait_seconds:.0f} seconds.",
                        kept="What was there is there.",
                        next_step="Try again when it has finished.",
                    ) from error
                time.sleep(0.1)
        yield


def abandoned(folder: Path, name: str) -> list[Path]:
    """What killed exports to ``folder/name`` left behind."""
    oldest = time.time() - ABANDONED_SECONDS
    return [path for path in folder.glob(f".{name}*.partial") if path.stat().st_mtime < oldest]


@contextmanager
def _beside(parent: Path, name: str) -> Iterator[Path]:
    folder = parent / f".{name}.{uuid4().hex[:8]}.partial"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Some network file systems cannot sync a folder.
        with suppress(OSError) if path.is_dir() else _nothing():
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
