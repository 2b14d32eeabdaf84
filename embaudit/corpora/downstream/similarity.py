"""Semantic similarity: Spearman's ρ between cosines and human scores of sentence pairs.

Scores of several data sets are on different scales: ρ is taken within each, and the score is their mean, as in MTEB.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embaudit.corpora.downstream.material import GradedPairs
from embaudit.corpora.downstream.split import in_report, units_of
from embaudit.corpora.downstream.task import Items, Vectors, unit_rows
from embaudit.statistics.intervals import Interval, correlation_interval, mean_spearman


class Similarity:
    """An outcome is a pair's cosine. Pairs that share a sentence form one unit; a pair's length is its longer side's.

    Args:
        lengths: (2, pairs) tokens of the first and second sentences.
    """

    name = "sts"

    def __init__(self, graded: GradedPairs, lengths: np.ndarray, *, seed: int) -> None:
        self.graded, self.lengths, self.seed = graded, np.asarray(lengths), seed
        self.wanted = np.array(graded.scores, dtype=np.float64)
        self.data_sets = np.array(graded.data_sets or ("",) * len(self.wanted))
        pairs = len(self.wanted)
        sentences: dict[str, int] = {}
        links = [
            (pair, pairs + sentences.setdefault(text, len(sentences)))
            for side in (graded.firsts, graded.seconds)
            for pair, text in enumerate(side)
        ]
        units = units_of(pairs + len(sentences), links)[:pairs]
        texts = [f"{first}\n{second}" for first, second in zip(graded.firsts, graded.seconds, strict=True)]
        self.items = Items(self.lengths.max(axis=0), units, in_report(texts, units, seed))

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        return dict.fromkeys(("first", "second"), ~self.items.is_report)

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        return np.einsum("nd,nd->n", unit_rows(vectors["first"]), unit_rows(vectors["second"]))

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return mean_spearman(outcomes[chosen], self.wanted[chosen], self.data_sets[chosen])

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        two, own = (before[chosen], after[chosen]), (self.wanted[chosen], self.items.units[chosen])
        return correlation_interval(*two, *own, resamples, seed, self.data_sets[chosen])

    def by_data_set(self) -> dict[str, tuple[Similarity, np.ndarray]]:
        """The task of each data set, and the places of its pairs in this one; empty if there is only one."""
        places = {name: np.flatnonzero(self.data_sets == name) for name in np.unique(self.data_sets).tolist()}
        if len(places) < 2:
            return {}
        return {
            name: (Similarity(self.graded.of(own.tolist()), self.lengths[:, own], seed=self.seed), own)
            for name, own in places.items()
        }
