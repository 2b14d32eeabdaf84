"""Restricts queries on a DuckLake, for which disabling external access is not sufficient.

A lake's reader has the PostgreSQL and DuckLake extensions loaded and can read the lake's data folder, so table
functions that open connections or list or read files would work, and COPY could write into that folder. Statements are
therefore parsed first, and only table functions that stay inside the warehouse are allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from embaudit.words.errors import WarehouseError

HARMLESS = {
    *("generate_series", "json_each", "json_tree", "pragma_table_info", "range", "repeat", "unnest"),
    *("duckdb_columns", "duckdb_constraints", "duckdb_functions", "duckdb_tables", "duckdb_types", "duckdb_views"),
    *("ducklake_snapshots", "ducklake_table_info"),
}
EXPLAIN = re.compile(r"\s*EXPLAIN\s*(?:\([^)]*\)|ANALYZE\b)?\s*", re.IGNORECASE)


def require_inside(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse statements that do more than read the warehouse.

    Raises:
        WarehouseError: if it is not a SELECT, or calls a table function with wider access.
    """
    asked = EXPLAIN.sub("", sql, count=1) if EXPLAIN.match(sql) else sql
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [asked]).fetchone()
    parsed = json.loads(row[0]) if row else {"error": True}
    if parsed.get("error"):
        if parsed.get("error_type") == "parser":
            # DuckDB reports syntax errors when it runs the statement.
            return
        raise WarehouseError(
            "A query on a DuckLake must be one SELECT statement.",
            kept="Nothing was changed.",
            next_step="For anything else, run embaudit export FILE and open that copy with DuckDB.",
        )
    for name in _table_functions(parsed):
        if name not in HARMLESS:
            raise WarehouseError(
                f"The table function {name} can access more than the warehouse, so queries on a DuckLake must not call "
                "it.",
                kept="Nothing was changed.",
                next_step="For anything else, run embaudit export FILE and open that copy with DuckDB.",
            )


def _table_functions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "TABLE_FUNCTION":
            yield str(node["function"]["function_name"]).lower()
        for value in node.values():
            yield from _table_functions(value)
    elif isinstance(node, list):
        for value in node:
            yield from _table_functions(value)
