"""What a watch writes, small enough to check by hand: see ``plausible``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
KEY = "k" * 16


def watch_rows() -> dict[str, list[dict[str, Any]]]:
    """A source with a new revision that got worse, after one that could not be read; a hub that was away."""
    return {
        "watched_revision": [
            _seen("/models/tiny", "c1", "audited", "a1", checkpoint_id="c1"),
            _seen("/models/tiny", "", "failed", None, reason="it has no weights", minutes=5),
            _seen("/models/tiny", "c2", "audited", "a3", checkpoint_id="c2", minutes=10),
            _seen("owner/away", "", "unreachable", None, reason="no answer"),
        ],
        "regression": [
            _change("socm_summary", "wikipedia", "socm_mean", 0.5, 0.4, "higher", 0.02, True),
            _change("socm_summary", "wikipedia", "socm_max", 0.9, 0.8, None, None, False),
            _change("pooled_stat", "wikipedia", "normalised_spread", 0.5, 0.4, "lower", 0.04, False),
            _change("sticky_severity", "moderate", "estimated", 3.0, 0.0, "higher", 2.0, True),
        ],
    }


def _seen(
    source: str,
    revision: str,
    status: str,
    audit_id: str | None,
    *,
    checkpoint_id: str | None = None,
    reason: str | None = None,
    minutes: int = 0,
) -> dict[str, Any]:
    return {
        "source": source,
        "revision": revision,
        "parameters_key": KEY,
        "parameters": '{"profile": "quick"}',
        "checkpoint_id": checkpoint_id,
        "status": status,
        "reason": reason,
        "audit_id": audit_id,
        "first_seen": NOON,
        "last_seen": NOON + timedelta(minutes=minutes),
    }


def _change(
    summary: str,
    item: str,
    measure: str,
    value: float,
    before: float,
    worse_when: str | None,
    tolerance: float | None,
    is_worse: bool,
) -> dict[str, Any]:
    return {
        "audit_id": "a3",
        "predecessor_audit_id": "a1",
        "summary": summary,
        "item": item,
        "measure": measure,
        "value": value,
        "predecessor_value": before,
        "delta": value - before,
        "relative_change": (value - before) / before if before else None,
        "worse_when": worse_when,
        "tolerance": tolerance,
        "is_worse": is_worse,
    }
