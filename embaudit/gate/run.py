"""Runs a gate on an audit in a warehouse, read-only."""

from __future__ import annotations

from datetime import UTC, datetime

from embaudit.address import Warehouse, warehouse_at
from embaudit.gate.evaluate import evaluate
from embaudit.gate.facts import find_audit, find_baseline, read_facts
from embaudit.gate.policy import Policy
from embaudit.gate.verdict import GateVerdict
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest


def run_gate(
    warehouse: Warehouse | str, audit: str, policy: Policy, baseline: str | None = None, wait_seconds: float = 5.0
) -> GateVerdict:
    """Compare a published audit with a policy.

    Args:
        audit: an id, its first digits, or ``latest``.
        baseline: the same, or ``previous``; None for the policy's.

    Raises:
        UsageError: if there is no such audit or baseline.
        CheckFailed: if the audit is not published.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        audit_id = find_audit(connection, audit)
        # A policy without change rules needs no baseline and must not fail without one.
        asked = baseline or (policy.baseline if policy.change else None)
        baseline_id = find_baseline(connection, audit_id, asked) if asked else None
        own = read_facts(connection, audit_id)
        other = read_facts(connection, baseline_id) if baseline_id else None
    return GateVerdict(
        audit_id=audit_id,
        source=own.source,
        policy=policy.name,
        policy_hash=policy.hash,
        baseline_audit_id=baseline_id,
        evaluated=datetime.now(UTC),
        findings=evaluate(policy, own, other),
    )
