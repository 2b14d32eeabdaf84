"""The last task of an audit: check every staged table, write the log, publish or refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import task

from embaudit_tasks.results import Staged


@task(name="check tables", persist_result=False)
def check_staged(staged: list[Staged], planned_rows: dict[str, int]) -> list[dict[str, Any]]:
    """Run the Great Expectations suites on the staged files."""
    from dataclasses import asdict

    from embaudit.expectations.check import check_tables

    return [asdict(row) for row in check_tables(group_by_table(staged), planned_rows)]


@task(name="publish", persist_result=False)
def publish_audit(
    warehouse: str,
    wait_seconds: float,
    audit: dict[str, Any],
    runs: list[dict[str, Any]],
    expectations: list[dict[str, Any]],
    staged: list[Staged],
) -> dict[str, int]:
    """Write the audit log; publish the tables if ``audit["status"]`` says so."""
    from embaudit.warehouse.publish import AuditRecord, ExpectationRow, MeasureRun, publish

    return publish(
        Path(warehouse),
        wait_seconds,
        AuditRecord(**audit),
        [MeasureRun(**run) for run in runs],
        [ExpectationRow(**row) for row in expectations],
        group_by_table(staged),
    )


@task(name="publish corpus", persist_result=False)
def publish_corpus(warehouse: str, wait_seconds: float, staged: list[Staged]) -> dict[str, int]:
    """Publish an ingested corpus, which belongs to no audit."""
    from embaudit.warehouse.publish import publish_content

    return publish_content(Path(warehouse), wait_seconds, group_by_table(staged))


def group_by_table(staged: list[Staged]) -> list[Any]:
    """Staged files by published table, shards in order; files between the steps are left out."""
    from embaudit.warehouse.publish import StagedTable
    from embaudit.warehouse.tables import TABLES

    return [
        StagedTable(name, paths)
        for name in TABLES
        if (paths := tuple(dict.fromkeys(part.path for part in staged if part.table == name)))
    ]
