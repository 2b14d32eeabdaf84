"""All published tables, one row class each, and their figures.

Columns are described only in these declarations (``embaudit.declared.table``); a measure's tables are declared in
its folder. Tables are published and documented in the order of ``ROWS``.
"""

from __future__ import annotations

from collections.abc import Iterable

from embaudit.declared.figure import Summary
from embaudit.declared.table import DeclaredTable, Row
from embaudit.measures import MEASURES
from embaudit.questions import report
from embaudit.steps import tables as subjects
from embaudit.warehouse.tables import audits
from embaudit.words.errors import UsageError

ROWS: tuple[type[Row], ...] = (
    *subjects.ROWS,
    *(row for measure in MEASURES.values() for row in measure.rows),
    *audits.ROWS,
    *report.ROWS,
)


def _by_name(rows: Iterable[type[Row]]) -> dict[str, type[Row]]:
    """Raises:
    UsageError: if two declare a table of one name: a measure of another package may."""
    found: dict[str, type[Row]] = {}
    for row in rows:
        first = found.setdefault(row.table.name, row)
        if first is not row:
            raise UsageError(
                f"{row.__module__} declares a table {row.table.name!r}, which {first.__module__} has already.",
                next_step=f"Rename it there, or uninstall the package: pip uninstall {row.__module__.split('.')[0]}",
            )
    return found


TABLES: dict[str, DeclaredTable] = {name: row.table for name, row in _by_name(ROWS).items()}
_VIEWS = (summary for measure in MEASURES.values() for summary in measure.view_summaries)
# Tables with figure columns, and views declared to have figures.
SUMMARIES: dict[str, Summary] = {
    summary.name: summary for summary in (*(table.summary for table in TABLES.values()), *_VIEWS) if summary
}
# The measure that each of a measure's summaries belongs to.
MEASURE_OF: dict[str, str] = {
    summary.name: measure.name
    for measure in MEASURES.values()
    for summary in (*(row.table.summary for row in measure.rows), *measure.view_summaries)
    if summary
}
