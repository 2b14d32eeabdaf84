"""What a change does, from rankings and vectors: numbers of each query, and their means with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.measures.collection import RESAMPLES
from embaudit.statistics.intervals import mean_interval
from embaudit.words.estimate import Estimate

SEED = 0


@dataclass(frozen=True)
class SurfaceEffect:
    """What one change does to each of the (q,) queries that it writes otherwise.

    Attributes:
        units: queries that share a relevant document have one unit.
        is_same: whether the token ids are the same.
        is_unwritten: whether the tokenizer cannot write it, though it could before.
        moved: 1 − cosine.
        overlap: overlap@10.
        before, after: nDCG@10.
        words_overlap, words_change: overlap@10 and change of nDCG@10 by TF-IDF; None if no text has a word.
    """

    units: np.ndarray
    is_same: np.ndarray
    is_unwritten: np.ndarray
    moved: np.ndarray
    overlap: np.ndarray
    before: np.ndarray
    after: np.ndarray
    words_overlap: np.ndarray | None = None
    words_change: np.ndarray | None = None

    def columns(self) -> dict[str, float | int | None]:
        """The measured columns of a row of ``surface``."""
        return {
            "queries": len(self.units),
            "units": len(np.unique(self.units)),
            "same_tokens": _mean(self.is_same),
            "unwritten": _mean(self.is_unwritten),
            "moved": _mean(self.moved),
            **self._estimate("overlap", self.overlap),
            "ndcg": _mean(self.before),
            **self._estimate("ndcg_change", self.after - self.before),
            "words_overlap": _mean(self.words_overlap),
            "words_ndcg_change": _mean(self.words_change),
        }

    def _estimate(self, name: str, values: np.ndarray) -> dict[str, float | None]:
        mean = _mean(values)
        interval = mean_interval(values, self.units, RESAMPLES, SEED) if len(values) else None
        return Estimate.holding(mean, interval).columns(name)


def _mean(values: np.ndarray | None) -> float | None:
    return float(np.mean(values)) if values is not None and len(values) else None


def is_newly_unwritten(before: Sequence[int], after: Sequence[int], unknown: int | None) -> bool:
    """Whether a text's own ids have the unknown token, or are none at all, which they had or were not before."""
    return (not after and bool(before)) or (unknown in after and unknown not in before)


def distances(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(q,) 1 − cosine of the rows of (q, d) and (q, d); 0 for the same row, 1 for one of zeros, without direction."""
    one, two = (rows.astype(np.float64) for rows in (before, after))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    products = np.einsum("qd,qd->q", one, two)
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    # Rounding would move what has not moved at all.
    return np.where((before == after).all(axis=1), 0.0, 1 - cosines)
