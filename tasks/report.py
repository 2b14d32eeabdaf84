"""Writes HTML pages from the published tables: of one audit, and of the whole warehouse."""

from __future__ import annotations

from pathlib import Path

from prefect import task

from embaudit.page.model import Page
from embaudit.page.write import write_index, write_page


@task(name="write report", task_run_name="write report of {audit_id}", persist_result=False)
def write_report(audit_id: str, warehouse: str, wait_seconds: float, folder: str) -> tuple[str, Page]:
    """Write ``FOLDER/<audit_id>.html``, replacing an earlier one; returns its path, and the page."""
    written = write_page(warehouse, audit_id, Path(folder), wait_seconds=wait_seconds)
    return str(written.path), written.page


@task(name="write index", task_run_name="write index", persist_result=False)
def write_overview(warehouse: str, wait_seconds: float, folder: str) -> str:
    """Write ``FOLDER/index.html``, replacing an earlier one; returns its path."""
    return str(write_index(warehouse, Path(folder), wait_seconds=wait_seconds))
