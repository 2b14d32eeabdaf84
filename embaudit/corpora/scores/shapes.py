"""The common form of all formats: a score of one checkpoint on one part of a task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from embaudit.words.errors import UsageError

# MTEB's names for the split and subset of a task that has only one.
DEFAULT_SPLIT = "test"
DEFAULT_SUBSET = "default"
NOTHING_IMPORTED = "Nothing was imported."


@dataclass(frozen=True)
class Score:
    """One row of ``downstream_score``, without the time of its import.

    Attributes:
        revision: of the checkpoint; "" if the file names none.
        metric: name of the metric; None if the file does not say.
        origin: the file.
        place: location in the file, for errors.
    """

    checkpoint: str
    revision: str
    task: str
    split: str
    subset: str
    score: float
    metric: str | None
    origin: str
    place: str

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return (self.checkpoint, self.revision, self.task, self.split, self.subset)

    def __str__(self) -> str:
        revision = f" at {self.revision[:12]}" if self.revision else ""
        return f"{self.checkpoint}{revision} on {self.task} ({self.split}, {self.subset})"


@dataclass(frozen=True)
class SkippedSource:
    """A skipped file or part of a file, and why."""

    origin: str
    why: str


def finite_number(value: Any) -> float | None:
    """The value as a float; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def row_error(origin: str, place: str, why: str) -> UsageError:
    """The error for an invalid row of a file."""
    return UsageError(
        f"{origin}, {place}: {why}", kept=NOTHING_IMPORTED, next_step="Correct or delete that row and import again."
    )
