"""The published tables: one row class each, and the one list of them; and the figures that they have.

A declaration (``embaudit.table``) is the only place where a column is described; a measure's stand in its folder. The
order is that in which tables are published and documented.
"""

from __future__ import annotations

from embaudit.figure import Summary
from embaudit.measures import MEASURES
from embaudit.table import Row, Table
from embaudit.tables import corpora, findings, watch

ROWS: tuple[type[Row], ...] = (
    *corpora.ROWS,
    *(row for measure in MEASURES.values() for row in measure.rows),
    *findings.ROWS,
    *watch.ROWS,
)
TABLES: dict[str, Table] = {row.table.name: row.table for row in ROWS}
_VIEWS = (summary for measure in MEASURES.values() for summary in measure.view_summaries)
# What has figures: tables with such columns, and views that are declared to have them.
SUMMARIES: dict[str, Summary] = {
    summary.name: summary for summary in (*(table.summary for table in TABLES.values()), *_VIEWS) if summary
}
