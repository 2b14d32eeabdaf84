"""Finds and deletes files no longer needed: old staged results, and partial files of killed processes.

All of them can be recomputed. Whatever uses a staged file updates its time (``stage.is_staged``), so its age is the
time since it was last created or used. While an audit runs, a lease in the staging folder keeps what was used since it
began, however long it takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

from embaudit.words.errors import UsageError

DAY_SECONDS = 86_400.0
# A younger partial file may still be in use.
PARTIAL_DAYS = 1.0
# Folder of the leases of running audits, in the staging folder.
LEASES = ".in-use"
RENEWED_SECONDS = 600.0


@dataclass(frozen=True)
class Leftovers:
    """Files to delete, or deleted ones."""

    staged: tuple[Path, ...]
    partial: tuple[Path, ...]
    bytes: int

    @property
    def files(self) -> int:
        return len(self.staged) + len(self.partial)


@contextmanager
def in_use(staging: str | Path) -> Iterator[None]:
    """Keep every file that is used from now on, until the ``with`` block ends or its process does."""
    lease = Path(staging) / LEASES / uuid4().hex
    if "://" in str(staging) or not _begin(lease):
        yield
        return
    is_over = Event()
    Thread(target=_renew, args=(lease, is_over), daemon=True, name="lease of staged files").start()
    try:
        yield
    finally:
        is_over.set()
        lease.unlink(missing_ok=True)


def _begin(lease: Path) -> bool:
    """Write a lease with its beginning, by the clock of its file system; False if nothing can be written."""
    try:
        lease.parent.mkdir(parents=True, exist_ok=True)
        lease.touch()
        lease.write_text(repr(lease.stat().st_mtime))
    except OSError:
        # Then there is nothing that maintenance could delete, either; what is to be staged fails with its own message.
        return False
    return True


def _renew(lease: Path, is_over: Event) -> None:
    while not is_over.wait(RENEWED_SECONDS):
        mark_used([str(lease)])


def _oldest_lease(staging: Path) -> float:
    """When the first of the audits began that are running now; infinity if none is."""
    began = float("inf")
    for lease in _files(staging / LEASES):
        # A killed process leaves one behind.
        if _days_old(lease) < PARTIAL_DAYS:
            with suppress(OSError, ValueError):
                began = min(began, float(lease.read_text()))
    return began


def find_leftovers(staging: str | Path, warehouse: Path | None, days: float) -> Leftovers:
    """Staged files older than ``days``, and partial files older than a day.

    Remote staging is left alone: object stores have their own expiry rules.

    Args:
        warehouse: a DuckDB file; a killed first publication leaves a hidden folder next to it.

    Raises:
        UsageError: if ``days`` is so short that files of a running audit could be deleted.
    """
    if days < 1:
        raise UsageError(
            "Staged files must be kept for at least one day: a running audit needs them.",
            next_step="Give a whole number of days, at least 1.",
        )
    staged: list[Path] = []
    partial: list[Path] = []
    if "://" not in str(staging):
        began = _oldest_lease(Path(staging))
        for path in _files(Path(staging)):
            is_partial = path.name.startswith(".") or path.parent.name == LEASES
            if _days_old(path) > (PARTIAL_DAYS if is_partial else days) and (is_partial or _used(path) < began):
                (partial if is_partial else staged).append(path)
    if warehouse is not None:
        for folder in warehouse.parent.glob(f".{warehouse.name}.*"):
            if folder.is_dir() and _days_old(folder) > PARTIAL_DAYS:
                partial += _files(folder)
    return Leftovers(tuple(staged), tuple(partial), sum(_size(path) for path in (*staged, *partial)))


def delete_leftovers(leftovers: Leftovers) -> None:
    """Delete the files, and folders that become empty; not what was used since it was found."""
    for path in (*leftovers.staged, *leftovers.partial):
        if _days_old(path) <= PARTIAL_DAYS:
            continue
        path.unlink(missing_ok=True)
        for folder in list(path.parents)[:2]:
            with suppress(OSError):
                folder.rmdir()


def mark_used(paths: Iterable[str]) -> None:
    """Update the time of staged files when they are used."""
    for path in paths:
        if "://" not in path:
            with suppress(OSError):
                os.utime(path)


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _days_old(path: Path) -> float:
    used = _used(path)
    return 0.0 if used == float("inf") else (time.time() - used) / DAY_SECONDS


def _used(path: Path) -> float:
    """When a file was last used; infinity if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
