"""Means over queries, and ratios of two means, with intervals over resampled units."""

from __future__ import annotations

import math

import numpy as np

from embaudit.statistics.intervals import exact_share, percentile_intervals, unit_weights
from embaudit.words.estimate import Estimate

RESAMPLES, SEED = 1_000, 0


def mean_of(values: np.ndarray, units: np.ndarray) -> Estimate:
    """Mean of (n,) values; percentile bootstrap over units."""
    return ratio_of(values, np.ones(len(values)), units)


def in_two_roles(found: Estimate) -> Estimate:
    """The interval of a mean over texts that ask for their neighbours among each other, √2 times as wide.

    A text counts as one that asks, and as one that is found; resampling those who ask knows the first half of the
    variance only. Measured, not derived: draws of texts differ by 1.2 to 1.5 times what resampling says, both made up
    (tests/switch/test_switch_roles.py) and real (benchmarks/README.md).
    """
    if found.value is None or found.low is None or found.high is None:
        return found
    low, high = (found.value + math.sqrt(2) * (end - found.value) for end in (found.low, found.high))
    return Estimate(found.value, max(low, -1.0), min(high, max(1.0, found.value)))


def ratio_of(above: np.ndarray, below: np.ndarray, units: np.ndarray) -> Estimate:
    """Σ above / Σ below of (n,) values of the same items; percentile bootstrap over units.

    Where all resamples agree, as with a ratio of exactly 1, the interval is that of a share that was met in every
    unit: no certainty follows from few of them. No interval below ten units.
    """
    total = float(below.sum())
    if not len(above) or total <= 0:
        return Estimate(None)
    value = float(above.sum()) / total
    weights = unit_weights(units, RESAMPLES, SEED)
    if not len(weights):
        return Estimate(value)
    sums = weights @ below
    resampled = np.divide(weights @ above, sums, out=np.full(len(sums), np.nan), where=sums > 0)
    found = Estimate.holding(value, percentile_intervals(resampled[:, None])[0])
    if found.low is None and np.ptp(resampled[np.isfinite(resampled)]) <= 1e-9 and 0 <= value <= 1 + 1e-9:
        trials = len(np.unique(units))
        return Estimate.reaching(value, exact_share(round(min(value, 1.0) * trials), trials))
    return found
