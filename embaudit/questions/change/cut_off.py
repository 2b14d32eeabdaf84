"""The scale of the score: what a cut-off that was chosen with the base does now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.downstream.threshold import lets_other_share_through, transferred
from embaudit.declared.finding import Finding
from embaudit.declared.rule import Rule, percent
from embaudit.measures.quality.measured import MeasuredPairs
from embaudit.measures.quality.scale import LET_THROUGH, MIN_PAIRS
from embaudit.questions.change.gains import BaseComparison
from embaudit.words.estimate import Estimate, shown

THROUGH_LOOK, KEPT_LOOK = 0.05, 0.1
RULE = Rule(
    "cut_off",
    look_if=f"the base's threshold for {percent(LET_THROUGH)} of unrelated pairs lets {percent(THROUGH_LOOK)} through "
    f"now, or keeps {percent(KEPT_LOOK)} less of the matching ones; either clearly, by McNemar's test "
    "([switch.md](switch.md))",
    reason="five times as many, or a tenth fewer: whoever compares scores with a number has to change it",
)


@dataclass(frozen=True)
class CutOff:
    """The base's threshold that lets 1 % of unrelated pairs through, and what it does to the tuned checkpoint.

    Attributes:
        base: the threshold.
        tuned: the one that lets as many through (``embaudit.corpora.downstream.threshold``).
        moved: tuned − base, paired.
        is_clear: whether the base's threshold clearly lets another share of unrelated pairs through now, or keeps
            another one of the matching pairs.
        through: the share of unrelated pairs that the base's threshold lets through now.
        kept_before, kept: the share of matching pairs that it kept, and keeps now.
    """

    name: str
    base: float
    tuned: float
    moved: Estimate
    is_clear: bool
    through: float
    kept_before: float
    kept: float


def measure_cut_off(each: BaseComparison) -> CutOff | None:
    """None for a collection, or if there are too few matching or unrelated pairs, or two similarities."""
    one, two = each.tuned, each.base
    if not isinstance(one, MeasuredPairs) or not isinstance(two, MeasuredPairs) or one.similarity != two.similarity:
        return None
    high, low = one.pairs.is_matching, one.pairs.is_unrelated
    if min(int(high.sum()), int(low.sum())) < MIN_PAIRS:
        return None
    ours, theirs, units = one.similarities(), two.similarities(), one.pairs.units
    base = float(np.quantile(theirs[low], 1 - LET_THROUGH, method="inverted_cdf"))
    ends = (-1.0, 1.0) if one.similarity == "cosine" else None
    same_share = transferred(theirs[low], ours[low], units[low], base, ends)
    # Of fewer than a hundred unrelated pairs, the base's lets none through, which is the share of many numbers.
    tuned = same_share.value
    if tuned is None:
        tuned = float(np.quantile(ours[low], 1 - LET_THROUGH, method="inverted_cdf"))
    return CutOff(
        one.name,
        base,
        tuned,
        Estimate(
            tuned - base,
            None if same_share.low is None else same_share.low - base,
            None if same_share.high is None else same_share.high - base,
        ),
        any(lets_other_share_through(theirs[kind], ours[kind], units[kind], base) for kind in (low, high)),
        float((ours[low] > base).mean()),
        float((theirs[high] > base).mean()),
        float((ours[high] > base).mean()),
    )


def cut_off_findings(found: Sequence[CutOff]) -> list[Finding]:
    """``look`` if a cut-off of the base would let through or drop clearly more now, where it moved most."""
    if not found:
        return []
    worst = max(found, key=lambda one: abs(one.moved.value or 0.0))
    values, has_effect = worst.moved, worst.through >= THROUGH_LOOK or worst.kept <= worst.kept_before - KEPT_LOOK
    sentence = (
        f"On {worst.name}, the threshold that lets 1 % of unrelated pairs through is {shown(worst.tuned)}; for the "
        f"base it is {shown(worst.base)}"
    )
    if not (worst.is_clear and has_effect):
        return [RULE.finding("ok", f"{sentence}. A cut-off chosen with the base would still do.", "", "", *values)]
    return [
        RULE.finding(
            "look",
            f"{sentence}. That one would let {100 * worst.through:.0f} % of them through now, and keep "
            f"{100 * worst.kept:.0f} % of matching pairs instead of {100 * worst.kept_before:.0f} %.",
            "A cut-off that was chosen with the base means something else now.",
            f"Change it where scores are compared with a number, here to {shown(worst.tuned)}.",
            *values,
        )
    ]
