"""The declarations as a page: ``docs/tables.md``, which ``make docs`` writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby

from embaudit.figure import Worse
from embaudit.table import Column, Row, Table, Warn
from embaudit.tables import ROWS, SUMMARIES, TABLES

INTRODUCTION = """\
# Published tables

Made from the declarations in `embaudit/tables/` by `make docs`; the same words are comments in the warehouse
(`SELECT table_name, column_name, comment FROM duckdb_columns()`). Tables *per audit* have the audit's id as their
first column, `audit_id`; the others belong to a checkpoint, a corpus or a watch, whichever audit brought their rows.
What a column may contain is checked before rows are published. *Figure*: gates and comparisons of audits know it.
"""


def tables_page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *_sections(), *_figures_of_views()])


def _sections() -> Iterator[str]:
    # A row class that stands apart from its module's others in the list is documented with them.
    modules = {row.__module__: None for row in ROWS}
    order = list(modules)
    ordered = sorted(ROWS, key=lambda row: order.index(row.__module__))
    for name, rows in groupby(ordered, key=lambda row: row.__module__):
        said = (sys.modules[name].__doc__ or "").strip().split("\n\n")
        yield f"## {' '.join(said[0].split()).removesuffix('.')}\n"
        yield from (" ".join(more.split()) + "\n" for more in said[1:])
        for row in rows:
            yield from _table(row)


def _figures_of_views() -> Iterator[str]:
    yield "## Figures of views\n"
    for summary in SUMMARIES.values():
        if summary.name not in TABLES:
            yield f"Of `{summary.name}`, with the item `{summary.item}`:\n"
            yield "\n".join(
                f"- `{one.name}`: {one.meaning}{f' Worse when {one.worse.when}.' if one.worse else ''}"
                for one in summary.figures
            )
    yield ""


def _table(row: type[Row]) -> Iterator[str]:
    table = row.table
    yield f"### `{table.name}`\n"
    yield f"{' '.join(table.meaning.split())} {_nature(table)}\n"
    yield "| column | type | meaning | checked |\n|---|---|---|---|"
    for one in table.columns.values():
        kind = one.sql_type.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ") + (" or null" if one.is_nullable else "")
        name = f"**`{one.name}`**" if one.name in table.keys else f"`{one.name}`"
        yield f"| {name} | {kind} | {_cell(one.comment)} | {_cell(', '.join(_checks(one)))} |"
    yield ""
    if table.statements:
        yield "\n".join(f"- `{one.name}`: {' '.join(one.meaning.split())}" for one in table.statements) + "\n"


def _nature(table: Table) -> str:
    parts = ["Per audit." if table.scope == "audit" else "Not per audit."]
    if table.is_bulk:
        parts.append("Without an index.")
    if table.is_detail:
        parts.append("Detail that `embaudit prune` may delete.")
    if table.item:
        parts.append(f"Its figures are of the item `{table.item}`.")
    return " ".join(parts)


def _checks(column: Column) -> Iterator[str]:
    low, high = column.within
    if low is not None and low == high:
        yield f"{low:g}"
    elif low is not None and high is not None:
        yield f"{low:g} … {high:g}"
    elif low is not None:
        yield f"≥ {low:g}"
    elif high is not None:
        yield f"≤ {high:g}"
    yield from (f"≥ `{name}`" for name in column.at_least)
    yield from (f"> `{name}`" for name in column.above)
    if column.members:
        yield " | ".join(f"`{member}`" for member in column.members)
    if column.warn:
        yield f"warning {_warning(column.warn)}"
    if isinstance(column.figure, Worse):
        yield f"figure, worse when {column.figure.when}"
    elif column.figure:
        yield "figure"


def _warning(warn: Warn) -> str:
    if warn.null or warn.false:
        return "if null" if warn.null else "if false"
    return f"below {warn.below:g}" if warn.below is not None else f"above {warn.above:g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(tables_page())
