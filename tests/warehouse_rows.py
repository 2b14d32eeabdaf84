"""What a warehouse answers, for tests that write the SQL themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb


def rows(place: Any, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Ask a warehouse, given by its path or as the outcome of an audit that was published in it."""
    path = place if isinstance(place, str | Path) else place.warehouse
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql, list(parameters)).fetchall()
