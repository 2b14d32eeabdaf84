"""Files that nobody needs any more: old staged results, the records that lead to them, and partial files of killed
processes.

All of them are caches: what is deleted too early is computed again. Staged files are marked by every publication
that reads them, so that their age is the time since they were last made or published.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from embaudit.errors import UsageError

DAY_SECONDS = 86_400.0
# A hidden partial file that is younger may still be written.
PARTIAL_DAYS = 1.0
# In a record of Prefect's the result is JSON within JSON.
STAGED_FILE = re.compile(r'path\\": \\"([^"\\]+\.parquet)\\"')


@dataclass(frozen=True)
class Leftovers:
    """Files to delete, or that were."""

    staged: tuple[Path, ...]
    cached: tuple[Path, ...]
    partial: tuple[Path, ...]
    bytes: int

    @property
    def files(self) -> int:
        return len(self.staged) + len(self.cached) + len(self.partial)


def find_leftovers(staging: str | Path, cache: Path, warehouse: Path | None, days: float) -> Leftovers:
    """Staged files older than ``days``, cached records of files that are gone, and partial files older than a day.

    A staging that is no local folder is left alone: object stores expire files by rules of their own.

    Args:
        warehouse: a DuckDB file, beside which a killed first publication leaves a hidden folder.

    Raises:
        UsageError: if the time is so short that a running audit's own files would go.
    """
    if days < 1:
        raise UsageError("Staged files stay for a day at least: a running audit still needs them.")
    staged: list[Path] = []
    partial: list[Path] = []
    if "://" not in str(staging):
        for path in _files(Path(staging)):
            is_partial = path.name.startswith(".")
            if _days_old(path) > (PARTIAL_DAYS if is_partial else days):
                (partial if is_partial else staged).append(path)
    gone = set(map(str, staged))
    cached = [path for path in _files(cache) if _days_old(path) > PARTIAL_DAYS and _leads_nowhere(path, gone, days)]
    if warehouse is not None:
        for folder in warehouse.parent.glob(f".{warehouse.name}.*"):
            if folder.is_dir() and _days_old(folder) > PARTIAL_DAYS:
                partial += _files(folder)
    found = (*staged, *cached, *partial)
    return Leftovers(tuple(staged), tuple(cached), tuple(partial), sum(_size(path) for path in found))


def delete_leftovers(leftovers: Leftovers) -> None:
    """Delete them, and the folders that are empty then."""
    # The records first: after a kill in between no record leads to nothing.
    for path in (*leftovers.cached, *leftovers.staged, *leftovers.partial):
        path.unlink(missing_ok=True)
        for folder in list(path.parents)[:2]:
            with suppress(OSError):
                folder.rmdir()


def mark_used(paths: Iterator[str] | tuple[str, ...]) -> None:
    """Staged files that a publication read are as young as it is."""
    for path in paths:
        if "://" not in path:
            with suppress(OSError):
                os.utime(path)


def _leads_nowhere(record: Path, gone: set[str], days: float) -> bool:
    """Whether a cached record names a staged file that is not there; one that names none goes by its age."""
    try:
        named = STAGED_FILE.findall(record.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False
    local = [path for path in named if "://" not in path]
    if not named:
        return _days_old(record) > days
    return any(path in gone or not Path(path).exists() for path in local)


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
