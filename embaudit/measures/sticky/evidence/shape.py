"""Distribution of a vocabulary's similarities, and its distance from a Gaussian (arXiv 2507.18171, appendix).

The paper assumes that cosines of token embeddings are Gaussian around u. This computes moments and quantiles over all
pairs of different tokens of a random sample, and the Kolmogorov distance from a Gaussian with the same mean and
standard deviation,

    D = max_x |F(x) − Φ((x − m)/s)|

as a distance, not as a test: with millions of pairs every test rejects. Pairs share tokens, so intervals are a
jackknife that leaves out one of 25 groups of tokens with all its pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy

from embaudit.measures.sticky import SAMPLED_TOKENS
from embaudit.statistics.intervals import MIN_UNITS, jackknife_half_width
from embaudit.words.estimate import Estimate

MEASURE_VERSION = 1
SAMPLE_SEED = 0
GROUPS = 25
# Cosines are counted in bins of 1e-4, the accuracy of the quantiles; values beyond ±1 are rounding errors.
EDGES = np.linspace(-1, 1, 20_001)
LEVELS = {"q001": 0.001, "q01": 0.01, "q05": 0.05, "q10": 0.1, "q25": 0.25, "q50": 0.5}
LEVELS |= {"q75": 0.75, "q90": 0.9, "q95": 0.95, "q99": 0.99, "q999": 0.999}
SHAPES = ("skewness", "excess_kurtosis", "gaussian_distance")
# Cosines of equal float32 vectors differ only by rounding.
ROUNDING = 1e-6
# Of a Gaussian narrower than ten bins, the distance is that of the bins.
SMALLEST_SD = 1e-3


def sample_tokens(count: int) -> np.ndarray:
    """Indices of up to ``SAMPLED_TOKENS`` of ``count`` vocabulary entries, in random order, the same in every audit."""
    return np.random.default_rng(SAMPLE_SEED).permutation(count)[:SAMPLED_TOKENS]


def similarity_shape(vectors: np.ndarray) -> dict[str, Any] | None:
    """Distribution of the cosines over all pairs of different rows of (N, D) vectors, rows in random order.

    Returns:
        tokens (nonzero rows), pairs, mean, sd, lowest, highest, quantiles, and each of ``SHAPES`` with ``_low`` and
        ``_high``; shapes are None if all cosines are equal, intervals below ten rows. None without a pair.
    """
    rows = vectors.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1)
    units = rows[norms > 0] / norms[norms > 0, None]
    N = len(units)
    if N < 2:
        return None
    sums = _ShapeSums(units)
    counts, powers = sums.of_all()
    mean, sd, *_ = _moments(powers)
    found: dict[str, Any] = {
        "tokens": N,
        "pairs": N * (N - 1) // 2,
        "mean": mean,
        "sd": sd,
        "lowest": sums.lowest,
        "highest": sums.highest,
        **{name: float(np.clip(_quantile(counts, level), sums.lowest, sums.highest)) for name, level in LEVELS.items()},
    }
    without = [sums.without(group) for group in range(len(sums.groups))] if N >= MIN_UNITS else []
    for name, shape in zip(SHAPES, (_skewness, _excess_kurtosis, _gaussian_distance), strict=True):
        found |= _estimate(shape, (counts, powers), without).columns(name)
    return found


class _ShapeSums:
    """Counts and power sums of the cosines, in total and by group of tokens: leaving a group out is a subtraction.

    Powers are of the distance from a centre near the mean, to avoid cancellation.
    """

    def __init__(self, units: np.ndarray) -> None:
        N = len(units)
        self.groups = np.array_split(units, min(GROUPS, N))
        total = units.sum(axis=0)
        # The mean over pairs of different rows.
        self._centre = float((total @ total - N) / (N * (N - 1)))
        self._counts = np.zeros((len(self.groups), len(EDGES) - 1), dtype=np.int64)
        self._powers = np.zeros((len(self.groups), 5))
        self._all_counts, self._all_powers = np.zeros(len(EDGES) - 1, dtype=np.int64), np.zeros(5)
        self.lowest, self.highest = 1.0, -1.0
        for one, other in combinations_with_replacement(range(len(self.groups)), 2):
            cosines = np.clip(self.groups[one] @ self.groups[other].T, -1, 1)
            values = cosines[np.triu_indices(len(cosines), 1)] if one == other else cosines.ravel()
            if len(values):
                self._count(values, {one, other})

    def of_all(self) -> tuple[np.ndarray, np.ndarray]:
        return self._all_counts, self._centred(self._all_powers)

    def without(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        return self._all_counts - self._counts[group], self._centred(self._all_powers - self._powers[group])

    def _count(self, values: np.ndarray, groups: set[int]) -> None:
        bins = np.minimum(((values + 1) / 2 * (len(EDGES) - 1)).astype(np.int64), len(EDGES) - 2)
        counts = np.bincount(bins, minlength=len(EDGES) - 1)
        off = values - self._centre
        squares = off * off
        powers = np.array([len(off), off.sum(), squares.sum(), (squares * off).sum(), (squares * squares).sum()])
        self._all_counts += counts
        self._all_powers += powers
        for group in groups:
            self._counts[group] += counts
            self._powers[group] += powers
        self.lowest, self.highest = min(self.lowest, float(values.min())), max(self.highest, float(values.max()))

    def _centred(self, powers: np.ndarray) -> np.ndarray:
        """(5,) the number of pairs, the mean, and the second to fourth central moments."""
        n, a, b, c, d = powers / np.array([1, *[powers[0]] * 4])
        return np.array(
            [n, self._centre + a, b - a**2, c - 3 * a * b + 2 * a**3, d - 4 * a * c + 6 * a**2 * b - 3 * a**4]
        )


def _moments(powers: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, standard deviation, third and fourth central moment."""
    _, mean, second, third, fourth = (float(value) for value in powers)
    return mean, max(second, 0.0) ** 0.5, third, fourth


def _skewness(counts: np.ndarray, powers: np.ndarray) -> float | None:
    _, sd, third, _ = _moments(powers)
    return third / sd**3 if sd > ROUNDING else None


def _excess_kurtosis(counts: np.ndarray, powers: np.ndarray) -> float | None:
    _, sd, _, fourth = _moments(powers)
    return fourth / sd**4 - 3 if sd > ROUNDING else None


def _gaussian_distance(counts: np.ndarray, powers: np.ndarray) -> float | None:
    """D at the bin edges; within a bin it may be 4e-5/s more, a bin's share of the Gaussian. None beyond .04."""
    mean, sd, *_ = _moments(powers)
    if not sd > SMALLEST_SD:
        return None
    below = np.concatenate([[0], counts.cumsum()]) / counts.sum()
    return float(np.abs(below - scipy.stats.norm.cdf(EDGES, mean, sd)).max())


def _quantile(counts: np.ndarray, level: float) -> float:
    """Linear interpolation within the bin."""
    below = counts.cumsum()
    wanted = level * below[-1]
    place = int(np.searchsorted(below, wanted))
    before = below[place] - counts[place]
    return float(EDGES[place] + (EDGES[1] - EDGES[0]) * (wanted - before) / max(int(counts[place]), 1))


def _estimate(
    shape: Callable[[np.ndarray, np.ndarray], float | None],
    whole: tuple[np.ndarray, np.ndarray],
    without: list[tuple[np.ndarray, np.ndarray]],
) -> Estimate:
    value = shape(*whole)
    left = [one for one in (shape(*part) for part in without) if one is not None]
    if value is None or not left or len(left) < len(without):
        return Estimate(value)
    return Estimate.around(value, jackknife_half_width(np.array(left)))
