"""The interface of tasks: items with a length, a unit and a half; an outcome per item; a score over a set of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Vectors = Mapping[str, np.ndarray]
Scores = dict[str, np.ndarray]


@dataclass(frozen=True)
class Items:
    """The items that a task is scored on: documents, queries or pairs.

    Attributes:
        lengths: (n,) tokens of the item's document, before truncation.
        units: (n,) items in one unit share a text, and are split and resampled together.
        is_report: (n,) whether the item is in the report half.
    """

    lengths: np.ndarray
    units: np.ndarray
    is_report: np.ndarray


class Scored(Protocol):
    """A task with a score."""

    @property
    def items(self) -> Items: ...

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        """Outcome of each item, (n, …), from the (texts, d) vectors of each side."""
        ...

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        """The task's main score over some items, given as mask or indices; None if undefined."""
        ...


class Task(Scored, Protocol):
    """A task on which arms are fitted and compared."""

    @property
    def name(self) -> str: ...

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        """Masks of the texts in the choose half, by side: the texts that whitening and centring are fitted on."""
        ...

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> tuple[float, float] | None:
        """A paired 95 % interval of the difference between two scores over the same items."""
        ...


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, (n, d) float64; zero vectors stay zero."""
    rows = np.asarray(vectors, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-30)
