"""Figures: the numbers of an audit that gates limit and by which audits are compared.

A figure is identified by its summary (a table or view), its item (the row) and its measure (the column). Columns of a
``Row`` declared with ``figure=`` are figures; those computed from a view are declared as a ``Summary`` of their own.

A figure of one audit in half precision and of the other in float32 (a machine that is faster in it, ``--dtype``) has
changed only if it moved by more than the precision explains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter
from typing import Literal, Protocol

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Worse:
    """The direction in which a figure gets worse, and the change that counts as noise if it has no interval.

    Attributes:
        absolute, relative: the noise is the larger of ``absolute`` and ``relative`` times the predecessor's value.
    """

    when: Direction
    absolute: float = 0.0
    relative: float = 0.0


@dataclass(frozen=True)
class SummaryFigure:
    """One measure of a summary.

    Attributes:
        meaning: empty for a column, which has its own.
        value, low, high: SQL over the summary's rows; ``low`` and ``high``, the 95 % interval, are empty without one.
        dtype: the same for the precision that it was computed in; empty, or null: the audit's.
    """

    name: str
    value: str
    worse: Worse | None = None
    low: str = ""
    high: str = ""
    meaning: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class Summary:
    """A table or view that has figures.

    Attributes:
        item: name of an item as a format of columns, such as ``{corpus}, layer {layer}``.
        is_aggregate: whether its figures aggregate all rows of an audit.
    """

    name: str
    item: str
    figures: tuple[SummaryFigure, ...]
    is_aggregate: bool = False

    @property
    def item_sql(self) -> str:
        """The item as a SQL expression."""
        parts = []
        for text, column, *_ in Formatter().parse(self.item):
            parts += [_literal(text)] if text else []
            parts += [column] if column else []
        return " || ".join(parts)

    def parts_of(self, item: str) -> dict[str, str]:
        """The columns in an item's name; if it is ambiguous, the greedy parse."""
        pattern = "".join(
            re.escape(text) + (f"(?P<{column}>.*)" if column else "")
            for text, column, *_ in Formatter().parse(self.item)
        )
        found = re.fullmatch(pattern, item, re.DOTALL)
        if found is None:
            raise ValueError(f"{item!r} is not an item of {self.name}")
        return found.groupdict()


def cell_view(summaries: tuple[Summary, ...]) -> str:
    """``summary_cell``: every cell of every summary of the published audits, one per row, nulls included."""
    parts = []
    for one in summaries:
        names = ", ".join(_literal(figure.name) for figure in one.figures)
        values = ",\n            ".join(f"CAST({figure.value} AS DOUBLE)" for figure in one.figures)
        dtypes = ", ".join(f"CAST({figure.dtype or 'NULL'} AS VARCHAR)" for figure in one.figures)
        parts.append(
            f"    SELECT audit_id, {_literal(one.name)} AS summary, {one.item_sql} AS item,\n"
            f"        unnest([{names}]) AS measure,\n        unnest([\n            {values}\n        ]) AS value,\n"
            f"        unnest([{dtypes}]) AS dtype\n"
            f"    FROM {one.name}{_grouped(one)}\n"
        )
    return (
        "-- Every cell of every summary of the published audits, one per row, nulls included.\n"
        "CREATE OR REPLACE VIEW summary_cell AS\nWITH figure AS (\n"
        + "    UNION ALL\n".join(parts)
        + ")\nSELECT figure.audit_id, figure.summary, figure.item, figure.measure, figure.value,\n"
        "    coalesce(figure.dtype, audit.dtype) AS dtype\n"
        "FROM figure\nJOIN audit USING (audit_id)\nWHERE audit.status = 'published';\n"
    )


def figure_view() -> str:
    """``summary_figure``: the cells with a value, by which audits are compared."""
    return (
        "-- Every figure of the published audits: the cells with a value, by which audits are compared.\n"
        "CREATE OR REPLACE VIEW summary_figure AS\nSELECT audit_id, summary, item, measure, value, dtype\n"
        "FROM summary_cell\nWHERE value IS NOT NULL;\n"
    )


def interval_view(summaries: tuple[Summary, ...]) -> str:
    """``summary_interval``: the 95 % intervals of figures that can get worse, for judging changes."""
    parts = [
        f"SELECT audit_id, {_literal(one.name)} AS summary, {one.item_sql} AS item,\n"
        f"    {_literal(figure.name)} AS measure, {figure.low} AS low, {figure.high} AS high\n"
        f"FROM {one.name}{_grouped(one)}\n"
        for one in summaries
        for figure in one.figures
        if figure.worse and figure.low
    ]
    return (
        "-- The 95 % intervals of figures that can get worse, for judging changes.\n"
        "CREATE OR REPLACE VIEW summary_interval AS\n" + "UNION ALL\n".join(parts).rstrip() + ";\n"
    )


def _grouped(summary: Summary) -> str:
    return "\n    GROUP BY audit_id" if summary.is_aggregate else ""


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


FULL = "float32"
# Of a 95 % interval's width: a validation in half precision that moves a figure by more is made in float32.
OF_INTERVAL = 0.1
# Of a figure's size, and of a figure below 1 so much in itself: measured, see docs/methods.md.
OF_VALUE, LEAST = 0.02, 0.002


class Measured(Protocol):
    """A figure, as gates and comparisons read it."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def dtype(self) -> str: ...


def moved_by_precision(own: Measured, before: Measured) -> float:
    """How far the two figures may be apart because of their precision alone; 0 if it is the same."""
    if own.dtype == before.dtype:
        return 0.0
    sizes = [abs(one.value) for one in (own, before) if one.value is not None]
    widths = [one.high - one.low for one in (own, before) if one.low is not None and one.high is not None]
    return max(LEAST, OF_VALUE * max(sizes, default=0.0), OF_INTERVAL * max(widths, default=0.0))
