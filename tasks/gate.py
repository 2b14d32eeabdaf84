"""Applies a policy to a published audit; the findings are checked and published like any other table."""

from __future__ import annotations

from embaudit.steps.results import stage_rows
from embaudit.system.files import content_key
from embaudit.warehouse.gate import GateVerdict, load_policy, run_gate
from embaudit.warehouse.tables.watch import GateResultRow
from embaudit.watch.open_items import gate_outcome
from embaudit_tasks.audit_task import audit_task
from embaudit_tasks.publish import publish_checked


@audit_task("gate")
def gate_audit(audit_id: str, policy: str, warehouse: str, wait_seconds: float, staging: str) -> GateVerdict:
    """Compare a published audit with the policy in a file, and publish the findings."""
    verdict = run_gate(warehouse, audit_id, load_policy(policy), wait_seconds=wait_seconds)
    key = content_key(audit=audit_id, policy=verdict.policy_hash, evaluated=verdict.evaluated.isoformat())
    staged = stage_rows(staging, "gate", key, GateResultRow, gate_rows(verdict))
    publish_checked([staged], warehouse, wait_seconds, kept=f"The audit {audit_id} is published.")
    return verdict


def gate_now(audit_id: str, policy: str, warehouse: str, wait_seconds: float, staging: str) -> tuple[str, str]:
    """The hash of the policy as it is now, and ``passed``, ``tripped`` or ``accepted``; unless it was before."""
    policy_hash = load_policy(policy).hash
    known = gate_outcome(warehouse, audit_id, policy_hash, wait_seconds)
    if known is None:
        gate_audit(audit_id, policy, warehouse, wait_seconds, staging)
        known = gate_outcome(warehouse, audit_id, policy_hash, wait_seconds)
    if known is None:
        raise ValueError(f"the gate of audit {audit_id} was stored, and is not there")
    return policy_hash, known


def gate_rows(verdict: GateVerdict) -> list[dict[str, object]]:
    """The rows of ``gate_result``: the verdict's findings, each with its audit and policy."""
    of = {
        "audit_id": verdict.audit_id,
        "policy": verdict.policy,
        "policy_hash": verdict.policy_hash,
        "baseline_audit_id": verdict.baseline_audit_id or "",
        "evaluated": verdict.evaluated,
    }
    return [{**of, **finding.model_dump()} for finding in verdict.findings]
