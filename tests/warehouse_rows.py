"""What a warehouse answers, for tests that write the SQL themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

# A published table of each kind.
FEW = ("checkpoint", "text", "token", "socm_pair", "socm_summary")
Tables = dict[str, list[tuple[Any, ...]]]


def every_table(path: Path) -> Tables:
    """All rows of all tables, in an order of their own."""
    with duckdb.connect(str(path), read_only=True) as connection:
        names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall() for (name,) in names}


def rows(place: Any, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Ask a warehouse, given by its path or as the outcome of an audit that was published in it."""
    path = place if isinstance(place, str | Path) else place.warehouse
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql, list(parameters)).fetchall()
