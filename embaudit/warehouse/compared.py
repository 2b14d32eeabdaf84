"""What is read of two audits to compare: the one before, and figures with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from embaudit.system.address import warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.regression import Figure


def find_predecessor(warehouse: str, audit_id: str, previous: str | None) -> str | None:
    """The audit to compare an audit with: same question, other checkpoint; None if there is none.

    Args:
        previous: the audit of the watched source's previous revision, preferred because audits of a watched link have
            the names of its targets.
    """
    with open_reader(warehouse_at(warehouse)) as connection:
        same = connection.execute(
            "SELECT before.audit_id FROM audit_question AS own JOIN audit_question AS before USING (question) "
            "WHERE own.audit_id = ? AND before.audit_id = ? AND own.checkpoint_id <> before.checkpoint_id",
            [audit_id, previous],
        ).fetchone()
        found = (
            same
            or connection.execute(
                "SELECT predecessor_audit_id FROM audit_predecessor WHERE audit_id = ?", [audit_id]
            ).fetchone()
        )
    return str(found[0]) if found else None


def read_figures(warehouse: str, audit_id: str) -> list[Figure]:
    """The summary figures of an audit, with their intervals."""
    with open_reader(warehouse_at(warehouse)) as connection:
        return figures_of(connection, audit_id)


def figures_of(connection: duckdb.DuckDBPyConnection, audit_id: str) -> list[Figure]:
    """The same on an open connection."""
    rows = connection.execute(
        "SELECT summary, item, measure, value, low, high, dtype FROM summary_figure "
        "LEFT JOIN summary_interval USING (audit_id, summary, item, measure) WHERE audit_id = ? ORDER BY ALL",
        [audit_id],
    ).fetchall()
    return [Figure(*row) for row in rows]


def read_weight_changes(warehouse: str, audit_id: str, predecessor_audit_id: str) -> list[dict[str, Any]]:
    """The rows of ``weight_change`` for two compared audits; empty if one of them did not look at the weights."""
    with open_reader(warehouse_at(warehouse)) as connection:
        cursor = connection.execute(
            "SELECT layer, is_read, tensors, changed FROM weight_change "
            "WHERE audit_id = ? AND predecessor_audit_id = ? ORDER BY layer NULLS FIRST",
            [audit_id, predecessor_audit_id],
        )
        return [dict(zip(("layer", "is_read", "tensors", "changed"), row, strict=True)) for row in cursor.fetchall()]


def is_published(warehouse: str, audit_id: str) -> bool:
    """Whether the warehouse has this audit, published (by another process)."""
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return False
    with open_reader(place, wait_seconds=60.0) as connection:
        found = connection.execute("SELECT 1 FROM audit WHERE audit_id = ? AND status = 'published'", [audit_id])
        return found.fetchone() is not None
