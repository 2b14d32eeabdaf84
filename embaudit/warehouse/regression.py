"""Compares two audits of the same question: what changed, and what got worse.

Every shared figure is compared; only figures with a declared direction can be worse, by more than noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from embaudit.declared.figure import Worse
from embaudit.statistics.intervals import difference_half_width
from embaudit.warehouse.precision import FULL, moved_by_precision
from embaudit.warehouse.tables import SUMMARIES


@dataclass(frozen=True)
class Figure:
    """One figure of one summary, with its 95 % interval if the audit has one, and the precision it was computed in."""

    summary: str
    item: str
    measure: str
    value: float
    low: float | None = None
    high: float | None = None
    dtype: str = FULL

    @property
    def name(self) -> tuple[str, str, str]:
        return self.summary, self.item, self.measure


# SOCM, cosines and spreads have intervals over texts; their tolerances apply only if those are missing.
RULES: dict[tuple[str, str], Worse] = {
    (summary.name, figure.name): figure.worse
    for summary in SUMMARIES.values()
    for figure in summary.figures
    if figure.worse
}


def compare(own: Iterable[Figure], before: Iterable[Figure]) -> list[dict[str, Any]]:
    """Rows of the table ``regression``, without the two audits' ids: every shared figure.

    If both values have an interval, the tolerance is the half-width of their difference (``difference_half_width``).
    Both audits read the same texts, so this is conservative: a smaller change may be real, too. What another precision
    may move a figure by (``moved_by_precision``) is added.
    """
    earlier = {figure.name: figure for figure in before}
    shared = [figure for figure in own if figure.name in earlier]
    return [_row(figure, earlier[figure.name]) for figure in sorted(shared, key=lambda one: one.name)]


def _row(own: Figure, before: Figure) -> dict[str, Any]:
    rule = RULES.get((own.summary, own.measure))
    delta = own.value - before.value
    by_precision = moved_by_precision(own, before)
    tolerance = None if rule is None else _tolerance(own, before, rule) + by_precision
    worse_by = delta if rule is None or rule.when == "higher" else -delta
    return {
        "summary": own.summary,
        "item": own.item,
        "measure": own.measure,
        "value": own.value,
        "predecessor_value": before.value,
        "delta": delta,
        "relative_change": delta / abs(before.value) if before.value else None,
        "worse_when": None if rule is None else rule.when,
        "tolerance": tolerance,
        "by_precision": by_precision,
        "is_worse": tolerance is not None and worse_by > tolerance,
    }


def _tolerance(own: Figure, before: Figure, rule: Worse) -> float:
    upper, lower = (own, before) if own.value >= before.value else (before, own)
    if upper.low is not None and lower.high is not None:
        return difference_half_width(upper.value - upper.low, lower.high - lower.value)
    return max(rule.absolute, rule.relative * abs(before.value))
