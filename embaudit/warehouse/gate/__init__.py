"""The gate: checks a published audit, or answers that are kept, against a policy.

A policy (TOML) says what is allowed: absolute limits, change against a baseline, severity, required measures.
``policy`` and ``load`` read it, ``facts`` and ``answers`` read what it is about from the warehouse, ``evaluate``
compares them, ``run`` puts it all together. A missing figure never makes a gate pass, unless the policy says so.

Runs a gate on an audit in a warehouse, read-only.

What a policy can refer to of answers: the figures and findings of the newest to each question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import duckdb

from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.gate.evaluate import evaluate
from embaudit.warehouse.gate.facts import (
    AuditFacts,
    Cell,
    GateFinding,
    GateTripped,
    GateVerdict,
    find_baseline,
    of_profiles,
    read_facts,
)
from embaudit.warehouse.gate.policy import Policy, load_audit_policy, load_policy
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import (
    LATEST,
    KeptAnswer,
    figures_of,
    find_answers,
    find_answers_before,
    find_checkpoint,
    find_state,
    no_answer,
)


def read_answers(
    connection: duckdb.DuckDBPyConnection, answers: Sequence[KeptAnswer], several: frozenset[str] = frozenset()
) -> AuditFacts:
    """Everything that rules can refer to: each question's figures, under the name of its command.

    Args:
        several: questions that were asked in several ways, whose figures say by which.
    """
    cells: list[Cell] = []
    findings: list[tuple[str, str]] = []
    for one in answers:
        of = one.question_key if one.asks in several else ""
        cells += [
            Cell(one.asks, figure.item, figure.figure, figure.value, figure.low, figure.high, question=of)
            for figure in figures_of(connection, one)
        ]
        findings.append((f"{one.asks}.verdict", one.level))
        findings += connection.execute(
            "SELECT concat(?, '.', name), level FROM answer_finding WHERE answer_id = ? ORDER BY place",
            [one.asks, one.computed_id],
        ).fetchall()
    checked = next((one for one in answers if one.asks == "check"), None)
    return AuditFacts(
        audit_id=answers[0].answer_id,
        source=answers[0].subject,
        profile="",
        measures=frozenset(one.asks for one in answers),
        cells=tuple(cells),
        tokens=None,
        capped={},
        bases=frozenset(),
        failed_warnings=(),
        sample_corpora=(),
        findings=tuple(findings),
        verdict=None if checked is None else (checked.verdict, checked.line),
    )


def asked_in_several_ways(answers: Sequence[KeptAnswer]) -> frozenset[str]:
    """Questions of which there is more than one, as with other settings."""
    return frozenset(asks for asks, count in Counter(one.asks for one in answers).items() if count > 1)


def run_gate(
    warehouse: Warehouse | str, audit: str, policy: Policy, baseline: str | None = None, wait_seconds: float = 5.0
) -> GateVerdict:
    """Compare a published audit, a checkpoint's state, or answers with a policy.

    Args:
        audit: an id, its first digits, ``latest``, or a checkpoint for its newest result of each measure and question.
            If the policy requires a profile, only its results count. Of an answer, its id, or what was asked about, for
            the newest answer to each question.
        baseline: the same, or ``previous``; None for the policy's.

    Raises:
        UsageError: if there is no such audit or baseline.
        CheckFailed: if the audit is not published.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        # A policy that refers to no figure holds for either, and the newest by itself is an audit.
        is_of_audits = policy.is_of_audits or audit == LATEST or find_checkpoint(connection, audit) is not None
        if policy.is_of_answers or not is_of_audits:
            answers = find_answers(connection, audit)
            if answers or policy.is_of_answers:
                return _of_answers(connection, answers or no_answer(audit), policy, baseline)
        state = find_state(connection, audit)
        if state.checkpoint_id is not None and policy.require.profiles:
            state = of_profiles(connection, state, policy.require.profiles)
        asked = baseline or _baseline_of(policy)
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


def _of_answers(
    connection: duckdb.DuckDBPyConnection, answers: list[KeptAnswer], policy: Policy, baseline: str | None
) -> GateVerdict:
    asked = baseline or _baseline_of(policy)
    before = find_answers_before(connection, answers, asked) if asked else []
    several = asked_in_several_ways(answers)
    own = read_answers(connection, answers, several)
    return GateVerdict(
        audit_id=own.audit_id,
        audits=tuple(answer.answer_id for answer in answers),
        is_of_answers=True,
        source=own.source,
        policy=policy.name,
        policy_hash=policy.hash,
        baseline_audit_id=before[0].answer_id if before else None,
        evaluated=datetime.now(UTC),
        findings=evaluate(policy, own, read_answers(connection, before, several) if before else None),
    )


def _baseline_of(policy: Policy) -> str | None:
    """A policy without change rules needs no baseline and must not fail without one."""
    return policy.baseline if policy.change else None


__all__ = ["GateFinding", "GateTripped", "GateVerdict", "Policy", "load_audit_policy", "load_policy", "run_gate"]
