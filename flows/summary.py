"""Shows an audit in the Prefect UI: its page as a Markdown artifact, its small tables as table artifacts."""

from __future__ import annotations

import re

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from embaudit.declared.document import Page, Table
from embaudit.measures import MEASURES
from embaudit.pages.markdown import plain, render
from embaudit.steps.results import Staged
from embaudit.steps.staging.stage import read_rows
from embaudit_flows.outcome import AuditOutcome
from embaudit_tasks.progress import markdown_artifact

# Tables small enough to read on a page; the others can be queried.
SHOWN_TABLES = tuple(table for measure in MEASURES.values() for table in measure.shown_tables)


def publish_verdict(source: str, line: str) -> None:
    """Publish a verdict, final or not, under a key of its checkpoint: while an audit runs, it is all that there is."""
    said = plain(line)
    markdown_artifact(f"audit-verdict-{key_of_source(source)}", said, f"Verdict on {plain(source)}: {said}")


def publish_artifacts(outcome: AuditOutcome, page: Page, staged: list[Staged]) -> None:
    """Publish artifacts with keys of their checkpoint, so that the UI keeps the history of each."""

    def key(name: str) -> str:
        return f"{name.replace('_', '-')}-{key_of_source(outcome.source)}"

    verdict = f": {plain(outcome.verdict['line'])}" if outcome.verdict else ""
    said = f"Audit of {plain(page.title)}{verdict}"
    # A browser follows no link from the server's page to a file.
    where = f"; its report is {plain(outcome.report)}" if outcome.report and not page.link else ""
    create_markdown_artifact(key=key("audit-summary"), markdown=render(page), description=f"{said}{where}")
    if page.link:
        create_link_artifact(
            link=page.link,
            key=key("audit-report"),
            link_text=f"Report of audit {outcome.audit_id}",
            description=f"Report of {plain(page.title)}",
        )
    of_audit = f"audit {outcome.audit_id} of {plain(outcome.source)}"
    for table in SHOWN_TABLES:
        rows = read_rows([part.path for part in staged if part.table == table])
        if rows:
            create_table_artifact(key=key(table), table=rows, description=f"{table}, {of_audit}")
    for part in (part for section in page.sections for part in section.parts):
        if isinstance(part, Table) and part.key and part.rows:
            create_table_artifact(key=key(part.key), table=part.records(), description=f"{part.title}, {of_audit}")


def key_of_source(source: str) -> str:
    """A checkpoint's name in the characters of a key, without a hub revision, which has the same history.

    Letters beyond ASCII are their code points, so that two names in another script stay two.
    """
    name = source if source.startswith("/") else source.partition("@")[0]
    readable = (one if one.isascii() else f"-{ord(one):x}-" for one in name.lower())
    return re.sub("[^a-z0-9]+", "-", "".join(readable)).strip("-") or "checkpoint"
