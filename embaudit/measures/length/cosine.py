"""Mean pairwise cosine of a set of vectors, with an interval over the texts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from embaudit.statistics.intervals import jackknife_half_width
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate

# With fewer than four texts, leaving one out leaves fewer than three pairs.
MIN_FOR_INTERVAL = 4


@dataclass(frozen=True)
class MeanCosine:
    """Mean cosine over the pairs of N texts; ``low`` and ``high`` are a 95 % jackknife over texts.

    Attributes:
        without: (N,) the mean without each text; empty if there is no interval.
    """

    texts: int
    mean: float | None
    low: float | None
    high: float | None
    without: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False, repr=False)


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """(N, D) float64 vectors of unit length.

    Raises:
        MeasureError: if a vector is zero or not finite; the message has its index.
    """
    X = vectors.astype(np.float64)
    lengths = np.linalg.norm(X, axis=1)
    bad = ~(np.isfinite(lengths) & (lengths > 0))
    if bad.any():
        place = int(np.argmax(bad))
        raise MeasureError(
            f"Vector {place} of {len(X)} has no direction (length {lengths[place]}).",
            next_step="Remove that text, or check the checkpoint for NaN.",
        )
    return np.asarray(X / lengths[:, None])


def mean_cosine(vectors: np.ndarray) -> MeanCosine:
    """(‖Σû‖² − N) / (N(N−1)): the mean over all pairs of different texts, without an N × N matrix.

    With s_i = û_i·Σû − 1 the sum over the pairs of text i, and T = Σ_i s_i / 2, the mean without text i is
    (T − s_i) / C(N−1, 2): a jackknife over texts costs no more than the mean.

    Args:
        vectors: (N, D), nonzero.

    Returns:
        The mean is None with fewer than two texts.

    Raises:
        MeasureError: if a vector is zero or not finite; the message has its index.
    """
    N = len(vectors)
    if N < 2:
        return MeanCosine(N, None, None, None)
    units = unit_vectors(vectors)
    sums = units @ units.sum(axis=0) - 1
    total = sums.sum() / 2
    mean = float(total / (N * (N - 1) / 2))
    if N < MIN_FOR_INTERVAL:
        return MeanCosine(N, mean, None, None)
    without = (total - sums) / ((N - 1) * (N - 2) / 2)
    _, low, high = Estimate.around(mean, jackknife_half_width(without))
    return MeanCosine(N, mean, low, high, without)
