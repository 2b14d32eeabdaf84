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
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return None
    with open_reader(place, wait_seconds) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if "answer" not in tables:
            return None
        cursor = connection.execute("SELECT * FROM answer WHERE answer_id = ?", [answer_id])
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
