"""What a cut-off on one scale becomes on another, from the similarities that two checkpoints give to the same pairs.

A cut-off t of the first scale x lets P(x > t) of some kind of pairs through. On the second scale y, the same share is
let through by the t′ with

    P(y > t′) = P(x > t)   ⇔   P(x ≤ t, y > t′) = P(x > t, y ≤ t′) .

The interval of t′ holds every number at which the pairs of the two kinds on the right, those that change sides, do not
differ in number by McNemar's test (mid-p, Fagerland, Lydersen and Laake 2013). It is paired, and assumes no
distribution: the 1 % quantile of a few hundred pairs, of which a bootstrap knows too little, has the wide interval that
it deserves. Units of pairs that share a text are counted once, by the sign of their difference.
"""

from __future__ import annotations

import numpy as np
import scipy

from embaudit.statistics.intervals import CONFIDENCE, MIN_UNITS, Interval, exact_share
from embaudit.words.estimate import Estimate


def transferred(
    first: np.ndarray, second: np.ndarray, units: np.ndarray, cut_off: float, ends: Interval | None = None
) -> Estimate:
    """The cut-off on the second scale that lets the same share through.

    No value if the cut-off lets all pairs or none through; no interval below ten units.

    Args:
        first: (n,) similarities on the scale of the cut-off.
        second: (n,) of the same pairs on the other scale.
        units: (n,) pairs of one unit share a text.
        ends: the least and the largest similarity; where too few pairs bound the cut-off, the interval ends there.
    """
    n, passing = len(first), int((first > cut_off).sum())
    if not 0 < passing < n:
        return Estimate(None)
    x, y = np.sort(first), np.sort(second)
    # The same way between the two values around it: the cut-off itself, if both scales are the same.
    rank = n - passing
    between = (cut_off - x[rank - 1]) / (x[rank] - x[rank - 1])
    value = float(y[rank - 1] + between * (y[rank] - y[rank - 1]))
    if len(np.unique(units)) < MIN_UNITS:
        return Estimate(value)
    steps = np.flatnonzero(_is_possible(*_changing(first, second, units, cut_off)))
    # Of the n + 1 numbers of pairs that may fail at the new cut-off, those from steps[0] to steps[-1].
    low, high = int(steps[0]), int(steps[-1])
    least = float(y[low - 1]) if low else None if ends is None else ends[0]
    most = float(y[high]) if high < n else None if ends is None else ends[1]
    if least is None or most is None or least >= most:
        return Estimate(value)
    return Estimate.reaching(value, (least, most))


def lets_other_share_through(first: np.ndarray, second: np.ndarray, units: np.ndarray, cut_off: float) -> bool:
    """Whether a cut-off clearly lets another share through on the second scale, by the same test."""
    _, places = np.unique(units, return_inverse=True)
    net = np.bincount(places, weights=(second > cut_off).astype(np.int64) - (first > cut_off))
    return not _is_possible(np.array([(net > 0).sum()]), np.array([(net < 0).sum()]))[0]


def _changing(
    first: np.ndarray, second: np.ndarray, units: np.ndarray, cut_off: float
) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) units of which more pairs come to pass than cease to, and the reverse, if the lowest 0 … n fail."""
    _, places = np.unique(units, return_inverse=True)
    # At first every pair passes, so those change that did not; each pair that fails is one less.
    net = np.bincount(places, weights=first <= cut_off).astype(np.int64)
    more, fewer = [int((net > 0).sum())], [0]
    for unit in places[np.argsort(second, kind="stable")]:
        net[unit] -= 1
        more.append(more[-1] - (net[unit] == 0))
        fewer.append(fewer[-1] + (net[unit] == -1))
    return np.array(more), np.array(fewer)


def _is_possible(more: np.ndarray, fewer: np.ndarray) -> np.ndarray:
    """Whether as many may come to pass as cease to: mid-p of a fair coin's tails, two-sided, above 5 %."""
    total, least = more + fewer, np.minimum(more, fewer)
    mid_p = scipy.stats.binom.cdf(least, total, 0.5) - scipy.stats.binom.pmf(least, total, 0.5) / 2
    return np.asarray((2 * mid_p > 1 - CONFIDENCE) | (more == fewer))


def share_of(is_so: np.ndarray, units: np.ndarray) -> Estimate:
    """The share of (n,) pairs, with an exact interval for as many trials as there are units; none below ten units.

    Exact, because the shares are often 0 or nearly, where resamples are all alike.
    """
    if not len(is_so):
        return Estimate(None)
    share, trials = float(is_so.mean()), len(np.unique(units))
    if trials < MIN_UNITS:
        return Estimate(share)
    return Estimate.reaching(share, exact_share(round(share * trials), trials))


def best_f1(matching: np.ndarray, unrelated: np.ndarray) -> float:
    """The cut-off with the best F₁ for telling matching from unrelated pairs, halfway between two similarities.

    F₁ = 2 TP / (2 TP + FP + FN). Of equally good ones, the lowest.
    """
    values = np.sort(np.concatenate([matching, unrelated]))
    middles = (values[1:] + values[:-1]) / 2
    kept, wrong = (len(some) - np.searchsorted(np.sort(some), middles, side="right") for some in (matching, unrelated))
    return float(middles[int(np.argmax(2 * kept / (kept + wrong + len(matching))))])
