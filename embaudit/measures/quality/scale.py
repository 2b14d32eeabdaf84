"""Finding: the scale of the score, which is what thresholds are taken from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.downstream.paired import Estimate
from embaudit.finding import Finding
from embaudit.intervals import PERCENTILES
from embaudit.measures.quality.measured import MeasuredPairs, shown, with_interval

RULE = "score_scale"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LET_THROUGH = 0.01
MIN_PAIRS = 20


@dataclass(frozen=True)
class Scale:
    """Quantiles of the similarity of unrelated and of matching pairs, and what a threshold does.

    Attributes:
        threshold: that lets 1 % of unrelated pairs through.
        above: the share of matching pairs above it; its interval includes that of the threshold.
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
    weights = measured.scorer.weights
    thresholds = resampled_quantile(unrelated, weights[:, low], 1 - LET_THROUGH)
    kept = weights[:, high]
    above = (kept * (matching > thresholds[:, None])).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
    threshold = float(resampled_quantile(unrelated, np.ones((1, len(unrelated))), 1 - LET_THROUGH)[0])
    return Scale(
        tuple(float(np.quantile(unrelated, share)) for share in QUANTILES),
        tuple(float(np.quantile(matching, share)) for share in QUANTILES),
        _estimate(threshold, thresholds),
        _estimate(float((matching > threshold).mean()), above),
    )


def resampled_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """(B,): the smallest value with at least a share of each resample at or below it.

    Args:
        values: (n,)
        weights: (B, n) how often each value occurs in each resample.
    """
    order = np.argsort(values)
    ends = weights[:, order].cumsum(axis=1)
    return np.asarray(values[order][(ends >= share * ends[:, -1:]).argmax(axis=1)])


def scale_findings(measured: MeasuredPairs, scale: Scale | None) -> list[Finding]:
    """Always ``ok``: no scale is wrong, but it must be known."""
    if scale is None:
        sentence = f"The scale of its scores was not measured: {measured.name} have too few matching or unrelated ones."
        return [Finding("not measured", sentence, name=RULE)]
    what = "cosine" if measured.similarity == "cosine" else f"{measured.similarity} score"
    (low, *_, middle_high) = scale.unrelated
    (matching_low, *_, matching_high) = scale.matching
    sentence = (
        f"On {measured.name}, nine in ten unrelated pairs have a {what} of {shown(low)} to {shown(middle_high)} "
        f"(median {shown(scale.unrelated[2])}), and matching pairs of {shown(matching_low)} to {shown(matching_high)} "
        f"(median {shown(scale.matching[2])}). A threshold of {with_interval(scale.threshold)} lets 1 % of unrelated "
        f"pairs through and keeps {_percent(scale.above)} of matching ones."
    )
    estimate = scale.threshold
    return [Finding("ok", sentence, name=RULE, value=estimate.value, low=estimate.low, high=estimate.high)]


def _estimate(value: float, resampled: np.ndarray) -> Estimate:
    """Percentiles: a quantile at the end of a sample is not distributed evenly around its value."""
    if not len(resampled):
        return Estimate(value)
    low, high = np.percentile(resampled, PERCENTILES)
    return Estimate(value, float(low), float(high)) if high > low else Estimate(value)


def _percent(estimate: Estimate) -> str:
    text = f"{100 * (estimate.value or 0.0):.0f} %"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"
