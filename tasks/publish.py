"""The last tasks of an audit: check every staged table, write the log, and publish if the checks passed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from embaudit.steps.results import Staged
from embaudit.warehouse.expectations.check import check_tables
from embaudit.warehouse.publish import (
    AuditRecord,
    ExpectationRow,
    MeasureRun,
    StagedTable,
    publish,
    publish_content,
)
from embaudit.warehouse.tables import TABLES
from embaudit.words.errors import CheckFailed
from embaudit_tasks.audit_task import audit_task


@audit_task("check tables")
def check_staged(staged: list[Staged], planned_rows: dict[str, int]) -> list[dict[str, Any]]:
    """Run the Great Expectations suites on the staged files; what has passed is not checked again."""
    # The staging folder, from STAGING/<measure>/<key>/<file>: results of checks are cached there.
    staging = staged[0].path.rsplit("/", 3)[0]
    return [asdict(row) for row in check_tables(group_by_table(staged), planned_rows, staging)]


@audit_task("publish")
def publish_audit(
    warehouse: str,
    wait_seconds: float,
    audit: dict[str, Any],
    runs: list[dict[str, Any]],
    expectations: list[dict[str, Any]],
    staged: list[Staged],
) -> dict[str, int]:
    """Write the audit log; publish the tables if ``audit["status"]`` says so."""
    return publish(
        warehouse,
        wait_seconds,
        AuditRecord(**audit),
        [MeasureRun(**run) for run in runs],
        [ExpectationRow(**row) for row in expectations],
        group_by_table(staged),
    )


@audit_task("publish corpus")
def publish_corpus(warehouse: str, wait_seconds: float, staged: list[Staged]) -> dict[str, int]:
    """Publish an ingested corpus, which belongs to no audit."""
    return publish_content(warehouse, wait_seconds, group_by_table(staged))


def publish_checked(staged: list[Staged], warehouse: str, wait_seconds: float, *, kept: str = "") -> dict[str, int]:
    """Publish tables outside an audit's own transaction, if they pass their suites. For use inside a task.

    Args:
        kept: what else is kept, for the error message.

    Raises:
        CheckFailed: naming the first expectation that fails.
    """
    planned: dict[str, int] = {}
    for part in staged:
        planned[part.table] = planned.get(part.table, 0) + part.rows
    failed = [check for check in check_staged.fn(staged, planned) if not check["success"]]
    if failed:
        first = failed[0]
        raise CheckFailed(
            f"{first['table_name']} fails its check {first['expectation']} ({first['column_name'] or 'the table'}).",
            kept=f"The rows are staged in {staged[0].path}, and are not published. {kept}".strip(),
            next_step="Please report it.",
        )
    return publish_content(warehouse, wait_seconds, group_by_table(staged))


def group_by_table(staged: list[Staged]) -> list[StagedTable]:
    """Staged files by published table, shards in order, without tables that are not published."""
    return [
        StagedTable(name, paths)
        for name in TABLES
        if (paths := tuple(dict.fromkeys(part.path for part in staged if part.table == name)))
    ]
