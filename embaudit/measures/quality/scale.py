"""Finding: the scale of the score, which is what thresholds are taken from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.declared.rule import Finding, Rule, percent
from embaudit.measures.quality.material import MORE_PAIRS
from embaudit.measures.quality.measured import MeasuredPairs
from embaudit.statistics.intervals import exact_share, quantile_ranks
from embaudit.words.estimate import Estimate, shown, with_interval

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LET_THROUGH = 0.01
MIN_PAIRS = 20
RULE = Rule(
    "score_scale",
    "quantiles of the cosine of unrelated and of matching pairs",
    reason=f"always `ok`: the threshold that lets {percent(LET_THROUGH)} of unrelated pairs through, for whoever has "
    f"to set one. `not measured` with fewer than {MIN_PAIRS} pairs of either kind",
)


@dataclass(frozen=True)
class Scale:
    """Quantiles of the similarity of unrelated and of matching pairs, and what a threshold does.

    Attributes:
        threshold: that lets 1 % of unrelated pairs through.
            Its interval is exact for any distribution of independent units. Below 368 units no pair bounds it from
            above: there it ends at a cosine of 1, and other similarities have none.
        above: the share of matching pairs above it; its interval is exact too, and includes that of the threshold.
    """

    unrelated: tuple[float, ...]
    matching: tuple[float, ...]
    threshold: Estimate
    above: Estimate


def measure_scale(measured: MeasuredPairs) -> Scale | None:
    """None if there are too few matching or unrelated pairs."""
    high, low = measured.pairs.is_matching, measured.pairs.is_unrelated
    if min(int(high.sum()), int(low.sum())) < MIN_PAIRS:
        return None
    values = measured.similarities()
    matching, unrelated = values[high], values[low]
    units = measured.pairs.units
    threshold = _threshold(unrelated, len(set(units[low])), 1.0 if measured.similarity == "cosine" else None)
    return Scale(
        tuple(float(np.quantile(unrelated, share)) for share in QUANTILES),
        tuple(float(np.quantile(matching, share)) for share in QUANTILES),
        threshold,
        _above(matching, len(set(units[high])), threshold),
    )


def _threshold(unrelated: np.ndarray, units: int, most: float | None) -> Estimate:
    """The quantile of (n,) values of so many independent units.

    Args:
        most: the largest possible value; None if there is none.
    """
    value = float(np.quantile(unrelated, 1 - LET_THROUGH, method="inverted_cdf"))
    low, high = quantile_ranks(units, 1 - LET_THROUGH)
    in_order = np.sort(unrelated)

    def at(rank: int) -> float:
        return float(in_order[round((rank - 1) * (len(in_order) - 1) / max(units - 1, 1))])

    end = most if high is None else at(high)
    return Estimate(value) if end is None else Estimate.reaching(value, (at(low), end))


def _above(matching: np.ndarray, units: int, threshold: Estimate) -> Estimate:
    """The share of (n,) values above the threshold, which is uncertain itself."""
    assert threshold.value is not None
    shares = [
        None if end is None else float((matching > end).mean())
        for end in (threshold.value, threshold.high, threshold.low)
    ]
    value, least, most = shares
    if value is None or least is None or most is None:
        return Estimate(value)
    return Estimate(value, exact_share(round(least * units), units)[0], exact_share(round(most * units), units)[1])


def scale_findings(measured: MeasuredPairs, scale: Scale | None) -> list[Finding]:
    """Always ``ok``: no scale is wrong, but it must be known."""
    if scale is None:
        sentence = f"The scale of its scores was not measured: {measured.name} have too few matching or unrelated ones."
        return [RULE.finding("not measured", sentence, advice=MORE_PAIRS)]
    what = "cosine" if measured.similarity == "cosine" else f"{measured.similarity} score"
    (low, *_, middle_high) = scale.unrelated
    (matching_low, *_, matching_high) = scale.matching
    sentence = (
        f"On {measured.name}, nine in ten unrelated pairs have a {what} of {shown(low)} to {shown(middle_high)} "
        f"(median {shown(scale.unrelated[2])}), and matching pairs of {shown(matching_low)} to {shown(matching_high)} "
        f"(median {shown(scale.matching[2])}). A threshold of {with_interval(scale.threshold)} lets 1 % of unrelated "
        f"pairs through and keeps {scale.above.percent()} of matching ones."
    )
    estimate = scale.threshold
    return [RULE.finding("ok", sentence, value=estimate.value, low=estimate.low, high=estimate.high)]
