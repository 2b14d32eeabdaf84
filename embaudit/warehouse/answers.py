"""Reads answers that are kept: of the same question about the same content, and of the time before."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from embaudit.system.address import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader


def find_answer(warehouse: Warehouse | str, content_key: str, wait_seconds: float) -> dict[str, Any] | None:
    """The last answer to a question about this content; None if there is none."""
    return _newest(warehouse, "content_key", content_key, wait_seconds)


def latest_answer(warehouse: Warehouse | str, question_key: str, wait_seconds: float) -> dict[str, Any] | None:
    """The last answer to a question, as it was asked; None if it was never asked."""
    return _newest(warehouse, "question_key", question_key, wait_seconds)


def accepted_answers(warehouse: Warehouse | str, answer_ids: Collection[str], wait_seconds: float) -> set[str]:
    """Those of these answers of which somebody accepted what is wrong."""
    if not answer_ids:
        return set()
    with open_reader(warehouse_at(warehouse), wait_seconds) as connection:
        rows = connection.execute(
            "SELECT history.answer_id FROM answer_history AS history JOIN acceptance AS accepted "
            "ON accepted.what = 'answer' AND accepted.audit_id = history.first_answer_id "
            "WHERE list_contains(?, history.answer_id)",
            [list(answer_ids)],
        ).fetchall()
    return {str(answer_id) for (answer_id,) in rows}


def _newest(warehouse: Warehouse | str, column: str, key: str, wait_seconds: float) -> dict[str, Any] | None:
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return None
    with open_reader(place, wait_seconds) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if "answer" not in tables:
            return None
        cursor = connection.execute(
            f"SELECT * FROM answer WHERE {column} = ? ORDER BY asked DESC, answer_id LIMIT 1", [key]
        )
        names = [name for name, *_ in cursor.description or ()]
        row = cursor.fetchone()
    return None if row is None else dict(zip(names, row, strict=True))
