"""What changed between two audits of one question, and which of it is worse.

Every figure that both have is compared; worse are only those that ``RULES`` declare, beyond what noise explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import hypot
from typing import Any

from embaudit.table import Direction


@dataclass(frozen=True)
class Figure:
    """One figure of one summary, with its 95 % interval where the audit has one."""

    summary: str
    item: str
    measure: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def name(self) -> tuple[str, str, str]:
        return self.summary, self.item, self.measure


@dataclass(frozen=True)
class Rule:
    """Which way a figure gets worse, and the change that says nothing where there are no intervals.

    Attributes:
        absolute, relative: the larger of the absolute change and the share of the predecessor's value.
        in_last_layer: of a figure by layer only the last one's: the served vector is made of that.
    """

    worse: Direction
    absolute: float
    relative: float
    in_last_layer: bool = False


# A count moves by a token or two when the draws fall otherwise; a severity rests on 1 - slope ratio, measured to
# some hundredths; SOCM, cosines and spreads have intervals over texts, and their figures here are for want of them.
RULES: dict[tuple[str, str], Rule] = {
    ("sticky_token", "worst_loss"): Rule("higher", 0.05, 0.0),
    ("sticky_token", "strong_or_moderate"): Rule("higher", 2, 0.1),
    ("sticky_summary", "sticky"): Rule("higher", 2, 0.1),
    ("sticky_reference_summary", "sticky"): Rule("higher", 2, 0.1),
    ("socm_summary", "socm_mean"): Rule("higher", 0.02, 0.0),
    ("layer_stat", "within_text_cosine"): Rule("higher", 0.02, 0.0, in_last_layer=True),
    ("layer_stat", "normalised_spread"): Rule("lower", 0.0, 0.1, in_last_layer=True),
    ("length_rise", "rise"): Rule("higher", 0.03, 0.0),
}


def compare(own: Iterable[Figure], before: Iterable[Figure]) -> list[dict[str, Any]]:
    """Rows of the table ``regression``, without the two audits' ids: every figure that both have.

    Where both values have an interval the tolerance is that of their difference, the square root of the sum of the
    squared half-widths on the sides that face each other (Zou and Donner 2008, MOVER). Both audits read the same
    texts, so that it is wider than it need be: a change beyond it is one, a smaller one may be.
    """
    earlier = {figure.name: figure for figure in before}
    shared = [figure for figure in own if figure.name in earlier]
    last = _last_layers(shared)
    return [_row(figure, earlier[figure.name], _rule(figure, last)) for figure in sorted(shared, key=lambda f: f.name)]


def _row(own: Figure, before: Figure, rule: Rule | None) -> dict[str, Any]:
    delta = own.value - before.value
    tolerance = None if rule is None else _tolerance(own, before, rule)
    worse_by = delta if rule is None or rule.worse == "higher" else -delta
    return {
        "summary": own.summary,
        "item": own.item,
        "measure": own.measure,
        "value": own.value,
        "predecessor_value": before.value,
        "delta": delta,
        "relative_change": delta / abs(before.value) if before.value else None,
        "worse_when": None if rule is None else rule.worse,
        "tolerance": tolerance,
        "is_worse": tolerance is not None and worse_by > tolerance,
    }


def _tolerance(own: Figure, before: Figure, rule: Rule) -> float:
    upper, lower = (own, before) if own.value >= before.value else (before, own)
    if upper.low is not None and lower.high is not None:
        return hypot(upper.value - upper.low, lower.high - lower.value)
    return max(rule.absolute, rule.relative * abs(before.value))


def _rule(figure: Figure, last_layers: set[str]) -> Rule | None:
    rule = RULES.get((figure.summary, figure.measure))
    return None if rule is not None and rule.in_last_layer and figure.item not in last_layers else rule


def _last_layers(figures: list[Figure]) -> set[str]:
    """The items ``corpus, layer N`` with the largest N of their corpus."""
    layers: dict[str, int] = {}
    for figure in figures:
        if figure.summary == "layer_stat":
            corpus, _, layer = figure.item.rpartition(", layer ")
            layers[corpus] = max(layers.get(corpus, 0), int(layer))
    return {f"{corpus}, layer {layer}" for corpus, layer in layers.items()}
