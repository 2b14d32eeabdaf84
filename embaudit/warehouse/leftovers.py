"""Finds and deletes files no longer needed: old staged results, and partial files of killed processes.

All of them can be recomputed. Steps and publications that use a staged file update its time, so its age is the time
since it was last created or used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from embaudit.errors import UsageError

DAY_SECONDS = 86_400.0
# A younger partial file may still be in use.
PARTIAL_DAYS = 1.0


@dataclass(frozen=True)
class Leftovers:
    """Files to delete, or deleted ones."""

    staged: tuple[Path, ...]
    partial: tuple[Path, ...]
    bytes: int

    @property
    def files(self) -> int:
        return len(self.staged) + len(self.partial)


def find_leftovers(staging: str | Path, warehouse: Path | None, days: float) -> Leftovers:
    """Staged files older than ``days``, and partial files older than a day.

    Remote staging is left alone: object stores have their own expiry rules.

    Args:
        warehouse: a DuckDB file; a killed first publication leaves a hidden folder next to it.

    Raises:
        UsageError: if ``days`` is so short that files of a running audit could be deleted.
    """
    if days < 1:
        raise UsageError("Staged files must be kept for at least one day: a running audit needs them.")
    staged: list[Path] = []
    partial: list[Path] = []
    if "://" not in str(staging):
        for path in _files(Path(staging)):
            is_partial = path.name.startswith(".")
            if _days_old(path) > (PARTIAL_DAYS if is_partial else days):
                (partial if is_partial else staged).append(path)
    if warehouse is not None:
        for folder in warehouse.parent.glob(f".{warehouse.name}.*"):
            if folder.is_dir() and _days_old(folder) > PARTIAL_DAYS:
                partial += _files(folder)
    return Leftovers(tuple(staged), tuple(partial), sum(_size(path) for path in (*staged, *partial)))


def delete_leftovers(leftovers: Leftovers) -> None:
    """Delete the files, and folders that become empty."""
    for path in (*leftovers.staged, *leftovers.partial):
        path.unlink(missing_ok=True)
        for folder in list(path.parents)[:2]:
            with suppress(OSError):
                folder.rmdir()


def mark_used(paths: Iterator[str] | tuple[str, ...]) -> None:
    """Update the time of staged files when they are used."""
    for path in paths:
        if "://" not in path:
            with suppress(OSError):
                os.utime(path)


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _days_old(path: Path) -> float:
    try:
        return (time.time() - path.stat().st_mtime) / DAY_SECONDS
    except FileNotFoundError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
