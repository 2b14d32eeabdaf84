"""Shows an audit in the Prefect UI: its page as a Markdown artifact, its small tables as table artifacts."""

from __future__ import annotations

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from embaudit.measures import MEASURES
from embaudit.page.markdown import plain, render
from embaudit.page.model import Page, Table
from embaudit.warehouse.stage import read_rows
from embaudit_tasks.results import Staged

# Tables small enough to read on a page; the others can be queried.
SHOWN_TABLES = tuple(table for measure in MEASURES.values() for table in measure.shown_tables)


def publish_artifacts(audit_id: str, page: Page, staged: list[Staged]) -> None:
    """Publish artifacts with keys, so that the UI keeps their history over audits."""
    create_markdown_artifact(key="audit-summary", markdown=render(page), description=f"Audit of {plain(page.title)}")
    if page.link:
        create_link_artifact(
            link=page.link,
            key="audit-report",
            link_text=f"Report of audit {audit_id}",
            description=f"Report of {plain(page.title)}",
        )
    for table in SHOWN_TABLES:
        rows = read_rows([part.path for part in staged if part.table == table])
        if rows:
            create_table_artifact(key=table.replace("_", "-"), table=rows, description=f"{table} of audit {audit_id}")
    for part in (part for section in page.sections for part in section.parts):
        if isinstance(part, Table) and part.key and part.rows:
            create_table_artifact(key=part.key, table=part.records(), description=f"{part.title}, audit {audit_id}")
