"""Semantic similarity: Spearman's ρ between cosines and human scores of sentence pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embaudit.downstream.material import GradedPairs
from embaudit.downstream.split import in_report, units_of
from embaudit.downstream.task import Items, Vectors, unit_rows
from embaudit.intervals import Interval, correlation_interval, spearman


class Similarity:
    """An outcome is a pair's cosine. Pairs that share a sentence form one unit; a pair's length is its longer side's.

    Args:
        lengths: (2, pairs) tokens of the first and second sentences.
    """

    name = "sts"

    def __init__(self, graded: GradedPairs, lengths: np.ndarray, *, seed: int) -> None:
        self.wanted = np.array(graded.scores, dtype=np.float64)
        pairs = len(self.wanted)
        sentences: dict[str, int] = {}
        links = [
            (pair, pairs + sentences.setdefault(text, len(sentences)))
            for side in (graded.firsts, graded.seconds)
            for pair, text in enumerate(side)
        ]
        units = units_of(pairs + len(sentences), links)[:pairs]
        texts = [f"{first}\n{second}" for first, second in zip(graded.firsts, graded.seconds, strict=True)]
        self.items = Items(np.asarray(lengths).max(axis=0), units, in_report(texts, units, seed))

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        return dict.fromkeys(("first", "second"), ~self.items.is_report)

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        return np.einsum("nd,nd->n", unit_rows(vectors["first"]), unit_rows(vectors["second"]))

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return spearman(outcomes[chosen], self.wanted[chosen])

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        two = before[chosen], after[chosen]
        return correlation_interval(*two, self.wanted[chosen], self.items.units[chosen], resamples, seed)
