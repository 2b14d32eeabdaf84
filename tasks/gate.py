"""A policy on a published audit: evaluate, check what was found like any other table, store it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefect import task

from embaudit.tables.watch import GateResultRow
from embaudit_tasks.results import Staged

if TYPE_CHECKING:
    from embaudit.gate import GateVerdict


@task(name="gate", persist_result=False)
def gate_audit(audit_id: str, policy: str, warehouse: str, wait_seconds: float, staging: str) -> GateVerdict:
    """Compare a published audit with the policy in a file, and publish the findings."""
    from embaudit.gate import load_policy, run_gate
    from embaudit.keys import content_key
    from embaudit.warehouse.stage import staged_path, write_rows
    from embaudit_tasks.publish import publish_checked

    verdict = run_gate(warehouse, audit_id, load_policy(policy), wait_seconds=wait_seconds)
    key = content_key(audit=audit_id, policy=verdict.policy_hash, evaluated=verdict.evaluated.isoformat())
    path = staged_path(staging, "gate", key, "gate_result")
    rows = gate_rows(verdict)
    staged = [Staged(table="gate_result", path=str(path), rows=write_rows(path, rows, GateResultRow.table.schema))]
    kept = f"The audit {audit_id} is published."
    publish_checked(staged, warehouse, wait_seconds, kept=kept)
    return verdict


def gate_rows(verdict: GateVerdict) -> list[dict[str, object]]:
    """The rows of ``gate_result``: the verdict's findings, each with what it was found of."""
    of = {
        "audit_id": verdict.audit_id,
        "policy": verdict.policy,
        "policy_hash": verdict.policy_hash,
        "baseline_audit_id": verdict.baseline_audit_id or "",
        "evaluated": verdict.evaluated,
    }
    return [{**of, **finding.model_dump()} for finding in verdict.findings]
