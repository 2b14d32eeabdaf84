"""The scale of the score: what a cut-off that was chosen with the base does now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.downstream.paired import PairedEstimate
from embaudit.finding import Finding
from embaudit.intervals import PERCENTILES
from embaudit.measures.change.gains import Beside
from embaudit.measures.quality.measured import MeasuredPairs, shown
from embaudit.measures.quality.scale import LET_THROUGH, MIN_PAIRS, resampled_quantile

RULE = "cut_off"
# A cut-off that lets through five times as many unrelated pairs, or keeps a tenth fewer of the matching ones.
THROUGH_LOOK, KEPT_LOOK = 0.05, 0.1


@dataclass(frozen=True)
class CutOff:
    """The threshold that lets 1 % of unrelated pairs through, and what the base's does to the tuned checkpoint.

    Attributes:
        base, tuned: the thresholds.
        moved: tuned − base, paired.
        through: the share of unrelated pairs that the base's threshold lets through now.
        kept_before, kept: the share of matching pairs that it kept, and keeps now.
    """

    name: str
    base: float
    tuned: float
    moved: PairedEstimate
    through: float
    kept_before: float
    kept: float


def measure_cut_off(each: Beside) -> CutOff | None:
    """None for a collection, or if there are too few matching or unrelated pairs, or two similarities."""
    one, two = each.tuned, each.base
    if not isinstance(one, MeasuredPairs) or not isinstance(two, MeasuredPairs) or one.similarity != two.similarity:
        return None
    high, low = one.pairs.is_matching, one.pairs.is_unrelated
    if min(int(high.sum()), int(low.sum())) < MIN_PAIRS:
        return None
    ours, theirs = one.similarities(), two.similarities()
    everything = np.ones((1, int(low.sum())))
    thresholds = [float(resampled_quantile(values[low], everything, 1 - LET_THROUGH)[0]) for values in (ours, theirs)]
    weights = one.scorer.weights[:, low]
    resampled = [resampled_quantile(values[low], weights, 1 - LET_THROUGH) for values in (ours, theirs)]
    moved = resampled[0] - resampled[1]
    ends = np.percentile(moved, PERCENTILES) if len(moved) else (0.0, 0.0)
    value = thresholds[0] - thresholds[1]
    return CutOff(
        one.name,
        thresholds[1],
        thresholds[0],
        PairedEstimate(value, min(float(ends[0]), value), max(float(ends[1]), value))
        if ends[1] > ends[0]
        else PairedEstimate(value),
        float((ours[low] > thresholds[1]).mean()),
        float((theirs[high] > thresholds[1]).mean()),
        float((ours[high] > thresholds[1]).mean()),
    )


def cut_off_findings(found: Sequence[CutOff]) -> list[Finding]:
    """``look`` if a cut-off of the base would let through or drop clearly more now, where it moved most."""
    if not found:
        return []
    worst = max(found, key=lambda one: abs(one.moved.value or 0.0))
    is_clear = (worst.moved.low or 0.0) > 0 or (worst.moved.high or 0.0) < 0
    has_effect = worst.through >= THROUGH_LOOK or worst.kept <= worst.kept_before - KEPT_LOOK
    values = worst.moved.value, worst.moved.low, worst.moved.high
    sentence = (
        f"On {worst.name}, the threshold that lets 1 % of unrelated pairs through is {shown(worst.tuned)}; for the "
        f"base it is {shown(worst.base)}"
    )
    if not (is_clear and has_effect):
        return [Finding("ok", f"{sentence}. A cut-off chosen with the base would still do.", "", "", RULE, *values)]
    return [
        Finding(
            "look",
            f"{sentence}. That one would let {100 * worst.through:.0f} % of them through now, and keep "
            f"{100 * worst.kept:.0f} % of matching pairs instead of {100 * worst.kept_before:.0f} %.",
            "A cut-off that was chosen with the base means something else now.",
            f"Change it where scores are compared with a number, here to {shown(worst.tuned)}.",
            RULE,
            *values,
        )
    ]
