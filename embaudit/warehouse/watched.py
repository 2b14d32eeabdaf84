"""What a watch reads from the warehouse: revisions seen before, and the figures of two audits to compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from embaudit.address import warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.watch.history import WatchedRevision
from embaudit.watch.index_whole import LastLook
from embaudit.watch.regression import Figure

COLUMNS = tuple(WatchedRevision.model_fields)
COLUMNS_OF = "SELECT column_name FROM duckdb_columns() WHERE table_name = ?"


def read_watched(warehouse: str) -> list[WatchedRevision]:
    """Every row of ``watched_revision``; none if there is no warehouse yet, or it lacks the table.

    Raises:
        WarehouseError: as ``open_reader``.
    """
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return []
    with open_reader(place) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if "watched_revision" not in tables:
            return []
        rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM watched_revision ORDER BY ALL").fetchall()
    found = (dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return [WatchedRevision(**{**row, "parameters": json.loads(row["parameters"])}) for row in found]


def read_last_looks(warehouse: str, wait_seconds: float) -> dict[str, LastLook]:
    """What is known of each watched index, by its name; nothing if there is no warehouse yet, or it lacks the table."""
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return {}
    with open_reader(place, wait_seconds) as connection:
        columns = {name for (name,) in connection.execute(COLUMNS_OF, ["index_check"]).fetchall()}
        if not columns:
            return {}
        most = "most_rows" if "most_rows" in columns else "NULL"
        rows = connection.execute(
            f"SELECT store, verdict, check_key, asked, {most}, rows, problems FROM index_check "
            "ORDER BY store, asked DESC, check_key"
        ).fetchall()
    found: dict[str, LastLook] = {}
    is_over: set[str] = set()
    for store, verdict, key, asked, most_rows, count, problems in rows:
        last = found.get(store)
        if last is None:
            # An older look knows only how many rows there were.
            most_rows = count if most_rows is None else most_rows
            found[store] = LastLook(
                verdict=verdict, key=key, night=asked, most_rows=most_rows, problems=json.loads(problems)
            )
        elif store not in is_over and verdict == last.verdict:
            found[store] = last.model_copy(update={"key": key, "night": asked})
        else:
            is_over.add(store)
    return found


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
