"""What a watch reads of the nights before: revisions seen."""

from __future__ import annotations

import json
from pathlib import Path

from embaudit.system.address import warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.watch.history import WatchedRevision

COLUMNS = tuple(WatchedRevision.model_fields)


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
