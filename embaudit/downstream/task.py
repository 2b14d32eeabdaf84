"""What tasks have in common: items with a length, a unit and a half, an outcome each, a score over some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Vectors = Mapping[str, np.ndarray]
Scores = dict[str, np.ndarray]


@dataclass(frozen=True)
class Items:
    """What a task is scored over: documents, queries or pairs.

    Attributes:
        lengths: (n,) tokens before truncation, of the document that the item is about.
        units: (n,) items of one unit share a text, and are split and drawn together.
        is_report: (n,) whether the item is of the half that is reported.
    """

    lengths: np.ndarray
    units: np.ndarray
    is_report: np.ndarray


class Scored(Protocol):
    """One thing that embeddings are used for."""

    @property
    def items(self) -> Items: ...

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        """What became of each item, (n, …), from (texts, d) vectors of each side."""
        ...

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        """The task's main score over some items, a mask or places; None where it is undefined."""
        ...


class Task(Scored, Protocol):
    """One that arms are fitted to and compared on."""

    @property
    def name(self) -> str: ...

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        """Texts of the choose half by side, as masks: what whitening and centring may see."""
        ...

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> tuple[float, float] | None:
        """A paired 95 % interval of the difference of two scores over the same items."""
        ...


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, (n, d) float64; a vector of zeros stays one."""
    rows = np.asarray(vectors, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-30)
