"""A named query's answer as rows by column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embaudit.warehouse.query import run_query


def ask(warehouse: Path, name: str) -> list[dict[str, Any]]:
    result = run_query(warehouse, name)
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]
