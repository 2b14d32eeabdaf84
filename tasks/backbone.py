"""Links a fine-tuned checkpoint's audit to its backbone's with one row; the deltas are a view over both."""

from __future__ import annotations

from prefect import task

from embaudit.steps.results import stage_rows
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.tables.watch import AuditBackboneRow
from embaudit_tasks.publish import publish_checked


@task(name="link backbone", task_run_name="link backbone", persist_result=False)
def link_backbone(audit_id: str, backbone_audit_id: str, warehouse: str, wait_seconds: float, staging: str) -> int:
    """Check and publish the link; returns the number of summary figures that the two audits share."""
    row = {"audit_id": audit_id, "backbone_audit_id": backbone_audit_id}
    staged = stage_rows(staging, "audit", audit_id, AuditBackboneRow, [row])
    publish_checked([staged], warehouse, wait_seconds, kept="Both audits are published.")
    with open_reader(warehouse) as connection:
        counted = connection.execute(
            "SELECT count(*) FROM backbone_delta WHERE audit_id = ? AND backbone_audit_id = ?",
            [audit_id, backbone_audit_id],
        ).fetchone()
    return int(counted[0]) if counted else 0
