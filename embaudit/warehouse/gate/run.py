"""Runs a gate on an audit in a warehouse, read-only."""

from __future__ import annotations

from datetime import UTC, datetime

from embaudit.system.address import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.gate.evaluate import evaluate
from embaudit.warehouse.gate.facts import find_baseline, of_profiles, read_facts
from embaudit.warehouse.gate.policy import Policy
from embaudit.warehouse.gate.verdict import GateVerdict
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import find_state


def run_gate(
    warehouse: Warehouse | str, audit: str, policy: Policy, baseline: str | None = None, wait_seconds: float = 5.0
) -> GateVerdict:
    """Compare a published audit, or a checkpoint's state, with a policy.

    Args:
        audit: an id, its first digits, ``latest``, or a checkpoint for its newest result of each measure and question.
            If the policy requires a profile, only its results count.
        baseline: the same, or ``previous``; None for the policy's.

    Raises:
        UsageError: if there is no such audit or baseline.
        CheckFailed: if the audit is not published.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        state = find_state(connection, audit)
        if state.checkpoint_id is not None and policy.require.profiles:
            state = of_profiles(connection, state, policy.require.profiles)
        # A policy without change rules needs no baseline and must not fail without one.
        asked = baseline or (policy.baseline if policy.change else None)
        before = find_baseline(connection, state, asked) if asked else None
        own = read_facts(connection, state)
        other = read_facts(connection, before) if before else None
    return GateVerdict(
        audit_id=state.newest,
        audits=tuple(state.audits),
        source=own.source,
        policy=policy.name,
        policy_hash=policy.hash,
        baseline_audit_id=before.newest if before else None,
        evaluated=datetime.now(UTC),
        findings=evaluate(policy, own, other),
    )
