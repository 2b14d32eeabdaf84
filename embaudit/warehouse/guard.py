"""What a query on a DuckLake may call: there, switching external access off does not close every door.

A lake's reader has DuckDB's PostgreSQL and DuckLake extensions loaded and may read its own data folder, so that
table functions which open connections, list or read files would work; and COPY would write into that folder. A
statement is therefore parsed first, and only table functions that stay inside the warehouse pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from embaudit.errors import WarehouseError

HARMLESS = {
    *("generate_series", "json_each", "json_tree", "pragma_table_info", "range", "repeat", "unnest"),
    *("duckdb_columns", "duckdb_constraints", "duckdb_functions", "duckdb_tables", "duckdb_types", "duckdb_views"),
    *("ducklake_snapshots", "ducklake_table_info"),
}
EXPLAIN = re.compile(r"\s*EXPLAIN\s*(?:\([^)]*\)|ANALYZE\b)?\s*", re.IGNORECASE)


def require_inside(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Let a statement pass that only asks the warehouse.

    Raises:
        WarehouseError: if it is no SELECT, or calls a table function that may reach something else.
    """
    asked = EXPLAIN.sub("", sql, count=1) if EXPLAIN.match(sql) else sql
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [asked]).fetchone()
    parsed = json.loads(row[0]) if row else {"error": True}
    if parsed.get("error"):
        if parsed.get("error_type") == "parser":
            # DuckDB's own words for what is wrong with it come when it runs.
            return
        raise WarehouseError(
            "A query on a DuckLake is one SELECT statement.",
            kept="Nothing was changed.",
            next_step="For anything else: embaudit export FILE, and open that copy with DuckDB.",
        )
    for name in _table_functions(parsed):
        if name not in HARMLESS:
            raise WarehouseError(
                f"The table function {name} can reach beyond the warehouse, so queries on a DuckLake may not call it.",
                kept="Nothing was changed.",
                next_step="For anything else: embaudit export FILE, and open that copy with DuckDB.",
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
