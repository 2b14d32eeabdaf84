"""95 % intervals: Student's t over texts, jackknife, bootstrap over units and clusters, exact for shares, MOVER.

An interval that the values cannot support is None, never of zero width, which readers would take for certainty; and so
is one that misses its own value (``Estimate.holding``), as percentiles of a biased bootstrap may.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from math import hypot
from typing import Any

import numpy as np
import scipy

from embaudit.words.estimate import ROUNDING, Estimate

CONFIDENCE = 0.95
# Half-width of the normal interval in standard errors, to two decimals as in printed tables.
NORMAL = 1.96
# Below this, bootstrap resamples repeat and the interval is far too narrow.
MIN_UNITS = 10
MIN_GROUP = 4
PERCENTILES = (2.5, 97.5)
Interval = tuple[float, float]
# Both are None if there is no interval.
Ends = tuple[float | None, float | None]


def student_half_width(values: np.ndarray) -> float | None:
    """t_{n−1} · s/√n, half of Student's interval of the mean of (n,) values; None below two, or if all are equal."""
    n = len(values)
    if n < 2 or not _differ(values):
        return None
    return float(student_quantile(n) * values.std(ddof=1) / np.sqrt(n))


def student_quantile(n: int) -> float:
    """t_{n−1}, half the width of Student's interval from n values, in standard errors."""
    return float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))


def mean_with_interval(values: np.ndarray) -> Estimate:
    """Mean and Student's interval of the finite values; no interval below two values, no mean without any."""
    defined = values[np.isfinite(values)]
    return Estimate.around(float(defined.mean()), student_half_width(defined)) if len(defined) else Estimate()


def jackknife_half_width(without: np.ndarray) -> float | None:
    """1.96 · √((N−1)/N · Σ_i (θ_i − θ̄)²) from (N,) values θ_i, each without one text (Efron and Stein 1981).

    None if they are all equal, or not all defined.
    """
    N = len(without)
    if not _differ(without):
        return None
    return float(NORMAL * np.sqrt((N - 1) / N * np.square(without - without.mean()).sum()))


def grouped_half_width(value: float, without: np.ndarray, shares: np.ndarray) -> float | None:
    """t_{G−1} · √((1/G) Σ_j (h_j θ − (h_j−1) θ_j − mean of these)² / (h_j−1)), a jackknife over G groups.

    The groups may differ in size (Busing, Meijer and van der Leeden 1999, Statistics and Computing 9): h_j = 1/share_j.
    None if the values are all equal, or not all defined.

    Args:
        value: θ of all texts.
        without: (G,) θ_j without each group.
        shares: (G,) share of the texts that is in each group.
    """
    if not _differ(without):
        return None
    h = 1 / shares
    off = h * value - (h - 1) * without
    variance = (np.square(off - off.mean()) / (h - 1)).mean()
    return float(student_quantile(len(without)) * np.sqrt(variance))


def quantile_ranks(count: int, share: float) -> tuple[int, int | None]:
    """Ranks (from 1) of the two of ``count`` independent values between which their quantile lies in 95 % of samples.

    Exact for any distribution: the number of values below the quantile q is binomial, so P(x_(l) > q) and P(x_(u) < q)
    are at most 2.5 % (David and Nagaraja 2003, §7.1). The upper one is None if there are too few values to bound it.
    """
    tail = (1 - CONFIDENCE) / 2
    low, high = (int(scipy.stats.binom.ppf(one, count, share)) for one in (tail, 1 - tail))
    return max(low, 1), high + 1 if high < count else None


def exact_share(hits: int, trials: int) -> Interval:
    """Clopper and Pearson's (1934) interval of a share; ``trials`` is not 0."""
    interval = scipy.stats.binomtest(hits, trials).proportion_ci(CONFIDENCE, method="exact")
    return float(interval.low), float(interval.high)


def score_share(hits: int, trials: int) -> Interval:
    """Wilson's (1927) interval of a share; ``trials`` is not 0.

    It covers in about 95 %, not in at least 95 % as ``exact_share`` (Brown, Cai and DasGupta 2001).
    """
    interval = scipy.stats.binomtest(hits, trials).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def exact_count(hits: int, trials: int, population: int) -> tuple[int, int]:
    """How many of a finite population have a property, from a sample of it drawn without replacement.

    Clopper and Pearson's interval with the hypergeometric distribution (Buonaccorsi 1987, The American Statistician
    41): the counts K for which neither P(X ≥ hits | K) nor P(X ≤ hits | K) is 2.5 % or less. It covers in at least
    95 %, and is the count itself once everything is in the sample.
    """
    tail = (1 - CONFIDENCE) / 2
    least, most = hits, population - (trials - hits)
    distribution = scipy.stats.hypergeom
    # Both probabilities are monotone in K.
    low = _first(least, most, lambda K: distribution.sf(hits - 1, population, K, trials) > tail)
    above = _first(least, most + 1, lambda K: distribution.cdf(hits, population, K, trials) <= tail)
    return low, max(above - 1, low)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first of ``low`` to ``high`` for which a condition holds that holds for all after it; ``high`` if none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def difference_half_width(above: float, below: float) -> float:
    """√(a² + b²) from the half-widths of two independent values, on the sides facing each other.

    Zou and Donner 2008 (MOVER): a larger difference is more than noise.
    """
    return hypot(above, below)


def resample_clusters(clusters: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """(B, P): how often each of P points occurs in each resample of whole clusters."""
    count = int(clusters.max()) + 1
    # Many figures of one sample are resampled alike.
    draw = _draws_of_few if count * resamples <= FEW_DRAWS else _draws
    return draw(count, resamples, seed)[:, clusters]


# So many numbers take 8 MB.
FEW_DRAWS = 1_000_000


def _draws(count: int, resamples: int, seed: int) -> np.ndarray:
    """(B, count): how often each of so many clusters is drawn."""
    generator = np.random.default_rng([seed, count])
    return generator.multinomial(count, np.full(count, 1 / count), size=resamples)


_draws_of_few = lru_cache(maxsize=8)(_draws)


def unit_weights(units: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """(B, n) float64: how often each item occurs in each resample of whole units; B = 0 below ``MIN_UNITS`` of them.

    Args:
        units: (n,) the unit of each item.
    """
    _, clusters = np.unique(units, return_inverse=True)
    if clusters.max(initial=-1) + 1 < MIN_UNITS:
        return np.empty((0, len(units)))
    return resample_clusters(clusters, resamples, seed).astype(np.float64)


def percentile_intervals(resampled: np.ndarray) -> list[Ends]:
    """Interval of each column of (B, T) resampled values, where defined; (None, None) if these are all equal."""
    # Pairs that all share a sentence are one cluster: resampling it gives zero width, which is not certainty.
    columns = [column[np.isfinite(column)] for column in resampled.T]
    return [_percentiles(column) or (None, None) for column in columns]


def _percentiles(resampled: np.ndarray) -> Interval | None:
    """None if the (B,) values, or the two percentiles of them, are equal."""
    if not len(resampled):
        return None
    ends = np.percentile(resampled, PERCENTILES)
    return (float(ends[0]), float(ends[1])) if _differ(ends) else None


def _differ(values: np.ndarray) -> bool:
    """Whether (n,) values are defined and differ by more than rounding."""
    is_defined = len(values) > 0 and np.isfinite(values).all()
    return bool(is_defined and np.ptp(values) > ROUNDING * np.abs(values).max())


def mean_interval(differences: np.ndarray, units: np.ndarray, resamples: int, seed: int) -> Interval | None:
    """Paired bootstrap over units of the mean of (n,) differences.

    None for fewer than ``MIN_UNITS`` units, or if all differences are equal.
    """
    _, places = np.unique(units, return_inverse=True)
    sums = np.bincount(places, weights=differences)
    counts = np.bincount(places).astype(np.float64)

    def mean(sums: np.ndarray, counts: np.ndarray, axis: int) -> np.ndarray:
        return sums.sum(axis=axis) / counts.sum(axis=axis)

    return _bootstrap((sums, counts), mean, resamples, seed, vectorized=True)


def correlation_interval(
    before: np.ndarray,
    after: np.ndarray,
    wanted: np.ndarray,
    units: np.ndarray,
    resamples: int,
    seed: int,
    groups: np.ndarray | None = None,
) -> Interval | None:
    """Paired bootstrap over units of the difference of ``mean_spearman`` with ``wanted``.

    None for too few units, if ρ is undefined for a resample, or if all resamples agree.
    """
    groups = np.zeros(len(wanted)) if groups is None else groups
    _, places = np.unique(units, return_inverse=True)
    members = np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1])

    def difference(drawn: np.ndarray) -> float:
        rows = np.concatenate([members[int(unit)] for unit in drawn])
        two = [mean_spearman(values[rows], wanted[rows], groups[rows]) for values in (after, before)]
        return float("nan") if two[0] is None or two[1] is None else two[0] - two[1]

    return _bootstrap((np.arange(len(members)),), difference, resamples, seed, vectorized=False)


def spearman(values: np.ndarray, wanted: np.ndarray) -> float | None:
    """Spearman's ρ; None if one side is constant."""
    return correlation(centred_ranks(values), centred_ranks(wanted))


def centred_ranks(values: np.ndarray) -> np.ndarray:
    """(n,) ranks without their mean: their correlation is Spearman's ρ."""
    return np.asarray(scipy.stats.rankdata(values) - (len(values) + 1) / 2)


def correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Of values without their means; None if one side is constant."""
    norms = [float(np.linalg.norm(side)) for side in (first, second)]
    return None if 0 in norms else float(first @ second / (norms[0] * norms[1]))


def mean_spearman(values: np.ndarray, wanted: np.ndarray, groups: np.ndarray) -> float | None:
    """Mean of Spearman's ρ within each group of (n,) values, whose scales may differ; None if it is defined in none.

    Of several groups, those with fewer than four values are left out: ρ of two or three is mostly ±1.
    """
    names, places = np.unique(groups, return_inverse=True)
    inside = [places == place for place in range(len(names))]
    found = [spearman(values[own], wanted[own]) for own in inside if len(names) == 1 or own.sum() >= MIN_GROUP]
    defined = [rho for rho in found if rho is not None]
    return float(np.mean(defined)) if defined else None


def spearman_interval(rho: float, units: int) -> Interval | None:
    """tanh(artanh ρ ± 1.96 · √((1 + ρ²/2)/(n − 3))) (Bonett and Wright 2000); None below four units, or for |ρ| = 1."""
    if units < 4 or abs(rho) >= 1:
        return None
    half = NORMAL * np.sqrt((1 + rho**2 / 2) / (units - 3))
    return float(np.tanh(np.arctanh(rho) - half)), float(np.tanh(np.arctanh(rho) + half))


def _bootstrap(
    data: tuple[np.ndarray, ...], statistic: Callable[..., Any], resamples: int, seed: int, *, vectorized: bool
) -> Interval | None:
    if len(data[0]) < MIN_UNITS:
        return None
    with warnings.catch_warnings():
        # Undefined resamples show in the result, so the warnings are redundant.
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        found = scipy.stats.bootstrap(
            data,
            statistic,
            paired=True,
            vectorized=vectorized,
            n_resamples=resamples,
            confidence_level=CONFIDENCE,
            # BCa divides by zero if nearly all differences are 0, as with accuracies.
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return (low, high) if _differ(np.array([low, high])) else None
