"""Compares two audits of the same question: what changed, and what got worse.

Every shared figure is compared; only figures with a declared direction can be worse, by more than noise.

What is read of two audits to compare: the one before, and figures with their intervals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from embaudit.declared.figure import FULL, Worse, moved_by_precision
from embaudit.statistics import difference_half_width
from embaudit.system.settings import warehouse_at
from embaudit.warehouse.connect import open_reader
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


def find_predecessor(warehouse: str, audit_id: str, previous: str | None) -> str | None:
    """The audit to compare an audit with: same question, other checkpoint; None if there is none.

    Args:
        previous: the audit of the watched source's previous revision, preferred because audits of a watched link have
            the names of its targets.
    """
    with open_reader(warehouse_at(warehouse)) as connection:
        same = connection.execute(
            "SELECT before.audit_id FROM audit_question AS own JOIN audit_question AS before USING (question) "
            "WHERE own.audit_id = ? AND before.audit_id = ? AND own.checkpoint_id <> before.checkpoint_id",
            [audit_id, previous],
        ).fetchone()
        found = (
            same
            or connection.execute(
                "SELECT predecessor_audit_id FROM audit_predecessor WHERE audit_id = ?", [audit_id]
            ).fetchone()
        )
    return str(found[0]) if found else None


def read_figures(warehouse: str, audit_id: str) -> list[Figure]:
    """The summary figures of an audit, with their intervals."""
    with open_reader(warehouse_at(warehouse)) as connection:
        return figures_of(connection, audit_id)


def figures_of(connection: duckdb.DuckDBPyConnection, audit_id: str) -> list[Figure]:
    """The same on an open connection."""
    rows = connection.execute(
        "SELECT summary, item, measure, value, low, high, dtype FROM summary_figure "
        "LEFT JOIN summary_interval USING (audit_id, summary, item, measure) WHERE audit_id = ? ORDER BY ALL",
        [audit_id],
    ).fetchall()
    return [Figure(*row) for row in rows]


def read_weight_changes(warehouse: str, audit_id: str, predecessor_audit_id: str) -> list[dict[str, Any]]:
    """The rows of ``weight_change`` for two compared audits; empty if one of them did not look at the weights."""
    with open_reader(warehouse_at(warehouse)) as connection:
        cursor = connection.execute(
            "SELECT layer, is_read, tensors, changed FROM weight_change "
            "WHERE audit_id = ? AND predecessor_audit_id = ? ORDER BY layer NULLS FIRST",
            [audit_id, predecessor_audit_id],
        )
        return [dict(zip(("layer", "is_read", "tensors", "changed"), row, strict=True)) for row in cursor.fetchall()]


def is_published(warehouse: str, audit_id: str) -> bool:
    """Whether the warehouse has this audit, published (by another process)."""
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return False
    with open_reader(place, wait_seconds=60.0) as connection:
        found = connection.execute("SELECT 1 FROM audit WHERE audit_id = ? AND status = 'published'", [audit_id])
        return found.fetchone() is not None
