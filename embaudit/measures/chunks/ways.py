"""Scores of documents from their pieces, and which way of searching is chosen; no checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from embaudit.corpora.downstream.split import in_report
from embaudit.measures.collection import RESAMPLES
from embaudit.measures.quality.material import Collection
from embaudit.statistics.intervals import mean_interval
from embaudit.words.estimate import Estimate

WHOLE = "whole"
# A way, and the most tokens of its pieces.
Key = tuple[str, int]


def best_of_pieces(similarities: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(q, n) the highest of (q, p) similarities to a document's pieces.

    Args:
        owners: (p,) the document of each piece, ascending; each of the n has at least one.
    """
    return np.asarray(np.maximum.reduceat(similarities, _starts(owners), axis=1))


def mean_of_pieces(vectors: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(n, d) mean of the (p, d) vectors of a document's pieces."""
    starts = _starts(owners)
    counts = np.diff([*starts, len(owners)])
    return np.asarray(np.add.reduceat(vectors.astype(np.float64), starts, axis=0) / counts[:, None])


def mean_scores(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(q, n) mean of (q, p) scores of a document's pieces."""
    return mean_of_pieces(scores.T, owners).T


def _starts(owners: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])


@dataclass(frozen=True)
class ChosenWay:
    """The way that half of the queries wants, and its gain over the whole on the others."""

    way: Key
    choosing: int
    reporting: int
    whole: float
    gain: Estimate


@dataclass(frozen=True)
class Ways:
    """nDCG@10 of each query, (q,), by the way of searching; the whole is one of them."""

    collection: Collection
    found: Mapping[Key, np.ndarray]

    @cached_property
    def whole(self) -> np.ndarray:
        return next(scores for (way, _), scores in self.found.items() if way == WHOLE)

    @cached_property
    def best(self) -> Key:
        """The highest score; of several, the first."""
        return max(self.found, key=lambda key: float(self.found[key].mean()))

    def row(self, key: Key, queries: np.ndarray | None = None) -> dict[str, float | int | str | None]:
        """Score and gain with their intervals, of the queries where (q,) is true."""
        chosen = np.ones(len(self.whole), dtype=bool) if queries is None else queries
        scores, gains = self.found[key][chosen], (self.found[key] - self.whole)[chosen]
        way, size = key
        return {
            # Limits differ by checkpoint, and whole documents are compared all the same.
            "searched": way if way == WHOLE else f"{way} {size}",
            **{"way": way, "size": size, "queries": int(chosen.sum())},
            **self._mean(scores, chosen).columns("score"),
            **self._mean(gains, chosen).columns("gain"),
        }

    def choice(self, seed: int) -> ChosenWay | None:
        """None if all queries are about one document, or there is nothing to choose from."""
        report = in_report(self.collection.queries, self.collection.units, seed)
        others = [key for key in self.found if key[0] != WHOLE]
        if not others or report.all() or not report.any():
            return None
        way = max(others, key=lambda key: float(self.found[key][~report].mean()))
        gains = (self.found[way] - self.whole)[report]
        return ChosenWay(
            way,
            int((~report).sum()),
            int(report.sum()),
            float(self.whole[report].mean()),
            self._mean(gains, report),
        )

    def _mean(self, values: np.ndarray, chosen: np.ndarray) -> Estimate:
        units = self.collection.units[chosen]
        return Estimate.holding(float(values.mean()), mean_interval(values, units, RESAMPLES, 0))
