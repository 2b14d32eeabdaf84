"""Reads answers that are kept: of the same question about the same content, and of earlier nights."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from embaudit.system.address import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.publish import run_write


def read_answer(warehouse: Warehouse | str, answer_id: str, wait_seconds: float) -> dict[str, Any] | None:
    """The row of an answer; None if there is none, or no warehouse yet, or an older one."""
    return _row(warehouse, "answer_id = ?", answer_id, wait_seconds)


def latest_answer(warehouse: Warehouse | str, question_key: str, wait_seconds: float) -> dict[str, Any] | None:
    """The last answer to a question, as it was asked; None if it was never asked."""
    return _row(
        warehouse,
        "question_key = ? ORDER BY last_asked DESC, asked DESC, answer_id LIMIT 1",
        question_key,
        wait_seconds,
    )


def _row(warehouse: Warehouse | str, where: str, key: str, wait_seconds: float) -> dict[str, Any] | None:
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return None
    with open_reader(place, wait_seconds) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if "answer" not in tables:
            return None
        cursor = connection.execute(f"SELECT * FROM answer WHERE {where}", [key])
        names = [name for name, *_ in cursor.description or ()]
        row = cursor.fetchone()
    return None if row is None else dict(zip(names, row, strict=True))


def ask_again(warehouse: Warehouse | str, answer_id: str, asked: datetime, wait_seconds: float) -> None:
    """Record that an answer was asked for again, and holds."""
    run_write(
        warehouse_at(warehouse),
        wait_seconds,
        lambda connection: connection.execute(
            "UPDATE answer SET last_asked = greatest(last_asked, ?) WHERE answer_id = ?", [asked, answer_id]
        ),
    )
