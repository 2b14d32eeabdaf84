"""Rows of published tables, filled from their declarations: a test writes only the cells that it is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from embaudit.declared.table import DeclaredColumn
from embaudit.warehouse.tables import TABLES

Table = list[dict[str, Any]]
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
# Texts that are not called after their column.
TEXTS = {"corpus": "wikipedia", "corpus_id": "w1"}
# Of an interval that no test looks at.
HALF_WIDTH = 0.05


def row_of(table: str, **cells: Any) -> dict[str, Any]:
    """A row with these cells, and in each other column a value that the declaration of its column allows.

    Numbers keep their order with other columns of the row; an interval lies around its value, and is null with it; a
    text that may be null is. What the rules of the table ask for is left to the given cells.
    """
    columns = TABLES[table].columns
    assert set(cells) <= set(columns), f"{table} has no {sorted(set(cells) - set(columns))}"
    ends = {}
    for name, column in columns.items():
        if column.interval:
            ends |= {column.interval.low: (name, -HALF_WIDTH), column.interval.high: (name, HALF_WIDTH)}
    row = dict(cells)

    def cell(name: str) -> Any:
        if name in row:
            return row[name]
        if name in ends:
            value, side = cell(ends[name][0]), ends[name][1]
            row[name] = None if value is None else value + side
        else:
            not_below = [cell(other) for other in columns[name].at_least if other in columns and other not in ends]
            not_below += [cell(other) + 1 for other in columns[name].above]
            row[name] = max([_allowed(columns[name]), *(value for value in not_below if value is not None)])
        return row[name]

    return {name: cell(name) for name in columns}


def rows_of(table: str, names: str, *rows: tuple[Any, ...], **same: Any) -> Table:
    """Rows that differ in the named columns, each given as a line of a table, and are the same in all others."""
    return [row_of(table, **dict(zip(names.split(), row, strict=True)), **same) for row in rows]


def _allowed(column: DeclaredColumn) -> Any:
    """A value in a column's range."""
    if column.members:
        return column.members[0]
    if column.staged_type == "string":
        text = "{}" if column.type == "json" else TEXTS.get(column.name, column.name)
        return None if column.is_nullable else text
    if column.type == "bool":
        return bool(column.warn and column.warn.false)
    if column.type == "instant":
        return NOON
    # One half or 1, or the end of the range that is next to it.
    low, high = column.within
    number = 0.5 if column.type == "float64" else 1
    number = number if low is None else max(number, low)
    return number if high is None else min(number, high)
