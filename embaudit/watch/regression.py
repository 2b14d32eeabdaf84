"""What changed between two audits of one question, and which of it is worse.

Every figure that both have is compared; worse are only those that are declared to have a direction, beyond what noise
explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from embaudit.figure import Worse
from embaudit.intervals import difference_half_width
from embaudit.tables import SUMMARIES


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


# SOCM, cosines and spreads have intervals over texts, and their tolerances are for want of them.
RULES: dict[tuple[str, str], Worse] = {
    (summary.name, figure.name): figure.worse
    for summary in SUMMARIES.values()
    for figure in summary.figures
    if figure.worse
}


def compare(own: Iterable[Figure], before: Iterable[Figure]) -> list[dict[str, Any]]:
    """Rows of the table ``regression``, without the two audits' ids: every figure that both have.

    Where both values have an interval the tolerance is that of their difference (``difference_half_width``). Both
    audits read the same texts, so that it is wider than it need be: a change beyond it is one, a smaller one may be.
    """
    earlier = {figure.name: figure for figure in before}
    shared = [figure for figure in own if figure.name in earlier]
    passed_over = _passed_over(shared)
    return [
        _row(figure, earlier[figure.name], _rule(figure, passed_over))
        for figure in sorted(shared, key=lambda one: one.name)
    ]


def _rule(figure: Figure, passed_over: set[tuple[str, str, str]]) -> Worse | None:
    rule = RULES.get((figure.summary, figure.measure))
    return None if rule and rule.only_last and figure.name in passed_over else rule


def _row(own: Figure, before: Figure, rule: Worse | None) -> dict[str, Any]:
    delta = own.value - before.value
    tolerance = None if rule is None else _tolerance(own, before, rule)
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
        "is_worse": tolerance is not None and worse_by > tolerance,
    }


def _tolerance(own: Figure, before: Figure, rule: Worse) -> float:
    upper, lower = (own, before) if own.value >= before.value else (before, own)
    if upper.low is not None and lower.high is not None:
        return difference_half_width(upper.value - upper.low, lower.high - lower.value)
    return max(rule.absolute, rule.relative * abs(before.value))


def _passed_over(figures: list[Figure]) -> set[tuple[str, str, str]]:
    """The names of figures by layer that are not of the last one: the served vector is made of that."""
    places = _places(figures)
    return set(places) - _last_of(places)


def last_items(figures: Iterable[Figure]) -> set[tuple[str, str, str]]:
    """The names of figures by layer that are of an audit's last one."""
    return _last_of(_places(figures))


def _places(figures: Iterable[Figure]) -> dict[tuple[str, str, str], tuple[tuple[str, ...], int]]:
    """What a figure by layer belongs to, and its layer, by its name."""
    ordered_by = {summary: rule.only_last for (summary, _), rule in RULES.items() if rule.only_last}
    places: dict[tuple[str, str, str], tuple[tuple[str, ...], int]] = {}
    for figure in figures:
        if figure.summary in ordered_by:
            parts = SUMMARIES[figure.summary].parts_of(figure.item)
            place = int(parts.pop(ordered_by[figure.summary]))
            places[figure.name] = (figure.summary, *parts.values()), place
    return places


def _last_of(places: Mapping[tuple[str, str, str], tuple[tuple[str, ...], int]]) -> set[tuple[str, str, str]]:
    last: dict[tuple[str, ...], int] = {}
    for group, place in places.values():
        last[group] = max(last.get(group, place), place)
    return {name for name, (group, place) in places.items() if place == last[group]}
