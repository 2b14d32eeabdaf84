"""What a watch reads of the nights before: revisions and indexes seen."""

from __future__ import annotations

import json
from pathlib import Path

from embaudit.system.address import warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.watch.history import WatchedRevision
from embaudit.watch.index_whole import LastLook

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
