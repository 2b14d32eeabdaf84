"""Paired bootstrap over units: what a difference of two scores on the same items might have been."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

# Below this the resamples repeat themselves, and their interval is far too narrow.
MIN_UNITS = 10
CONFIDENCE = 0.95
Interval = tuple[float, float]


def mean_interval(differences: np.ndarray, units: np.ndarray, resamples: int, seed: int) -> Interval | None:
    """Of the mean of (n,) differences; None for fewer than ``MIN_UNITS`` units."""
    _, places = np.unique(units, return_inverse=True)
    sums = np.bincount(places, weights=differences)
    counts = np.bincount(places).astype(np.float64)

    def mean(sums: np.ndarray, counts: np.ndarray, axis: int) -> np.ndarray:
        return sums.sum(axis=axis) / counts.sum(axis=axis)

    return _bootstrap((sums, counts), mean, resamples, seed, vectorized=True)


def correlation_interval(
    before: np.ndarray, after: np.ndarray, wanted: np.ndarray, units: np.ndarray, resamples: int, seed: int
) -> Interval | None:
    """Of the difference of Spearman's ρ with ``wanted``; None for too few units, or where a resample has no ρ."""
    _, places = np.unique(units, return_inverse=True)
    members = np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1])

    def difference(drawn: np.ndarray) -> float:
        rows = np.concatenate([members[int(unit)] for unit in drawn])
        two = [spearman(values[rows], wanted[rows]) for values in (after, before)]
        return float("nan") if two[0] is None or two[1] is None else two[0] - two[1]

    return _bootstrap((np.arange(len(members)),), difference, resamples, seed, vectorized=False)


def spearman(values: np.ndarray, wanted: np.ndarray) -> float | None:
    """Spearman's ρ; None where one side does not vary."""
    ranks = [scipy.stats.rankdata(side) - (len(side) + 1) / 2 for side in (values, wanted)]
    norms = [float(np.linalg.norm(side)) for side in ranks]
    return None if 0 in norms else float(ranks[0] @ ranks[1] / (norms[0] * norms[1]))


def _bootstrap(
    data: tuple[np.ndarray, ...], statistic: Callable[..., Any], resamples: int, seed: int, *, vectorized: bool
) -> Interval | None:
    if len(data[0]) < MIN_UNITS:
        return None
    with warnings.catch_warnings():
        # Resamples without a value are told by what comes out.
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        found = scipy.stats.bootstrap(
            data,
            statistic,
            paired=True,
            vectorized=vectorized,
            n_resamples=resamples,
            confidence_level=CONFIDENCE,
            # BCa divides by zero where nearly all differences are 0, as accuracies' are.
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return (low, high) if np.isfinite([low, high]).all() else None
