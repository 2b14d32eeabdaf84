"""All published tables, one row class each, and their figures.

Columns are described only in these declarations (``embaudit.table``); a measure's tables are declared in its folder.
Tables are published and documented in the order of ``ROWS``.
"""

from __future__ import annotations

from embaudit.figure import Summary
from embaudit.measures import MEASURES
from embaudit.steps import tables as subjects
from embaudit.table import Row, Table
from embaudit.tables import findings, watch

ROWS: tuple[type[Row], ...] = (
    *subjects.ROWS,
    *(row for measure in MEASURES.values() for row in measure.rows),
    *findings.ROWS,
    *watch.ROWS,
)
TABLES: dict[str, Table] = {row.table.name: row.table for row in ROWS}
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
