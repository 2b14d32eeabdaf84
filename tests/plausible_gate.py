"""Plausible rows of a gate: a limit that holds, a change that trips, a figure that is missing (warning only)."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def gate_result_rows(evaluated: datetime) -> list[dict[str, Any]]:
    """The findings of the audit a2 against a1."""
    return [
        _row("no strong change", "change", "worst_loss", evaluated, "tripped", value=0.62, highest=0.5, lowest=0.4)
        | {"baseline_value": 0.45, "change": 0.17, "trips": True, "reason": "users saw it"},
        _row("few bad tokens", "limit", "strong_or_moderate", evaluated, "passed", value=3.0, highest=3.0),
        _row("a threshold", "limit", "threshold", evaluated, "missing"),
    ]


def _row(
    rule: str, kind: str, measure: str, evaluated: datetime, outcome: str, **limits: float | None
) -> dict[str, Any]:
    return {
        "audit_id": "a2",
        "policy": "release",
        "policy_hash": "0123456789abcdef",
        "baseline_audit_id": "a1",
        "rule": rule,
        "kind": kind,
        "summary": "sticky_token",
        "item": "retention",
        "measure": measure,
        **dict.fromkeys(("value", "lowest", "highest", "baseline_value", "change")),
        **limits,
        "observed": "null in this audit" if outcome == "missing" else "",
        "outcome": outcome,
        "trips": outcome == "tripped",
        "reason": "",
        "evaluated": evaluated,
    }
