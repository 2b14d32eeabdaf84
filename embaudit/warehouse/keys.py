"""Primary keys, as declared by row classes and migrations: enforced by DuckDB, but left to the writer in a DuckLake."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from embaudit.warehouse.tables import TABLES

# `PRIMARY KEY (a, b)` as the last element of a table, after the comma and comments of the previous column.
TABLE_KEY = re.compile(r",(?P<between>(?:\s|--[^\n]*\n)*)PRIMARY KEY\s*\((?P<columns>[^)]*)\)")
COLUMN_KEY = re.compile(r"\bPRIMARY KEY\b")
TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(?P<name>\w+) \((?P<body>.*?)\n\)", re.DOTALL)


def without_keys(sql: str) -> str:
    """The same statements for a database without keys: key columns are just NOT NULL."""
    return COLUMN_KEY.sub("NOT NULL", TABLE_KEY.sub(lambda found: found["between"], sql))


@cache
def primary_keys() -> dict[str, tuple[str, ...]]:
    """Every table's key: declared by its row class, or parsed from the migrations."""
    folder = files("embaudit_sql").joinpath("migrations")
    others = keys_of(file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".sql"))
    return others | {table.name: table.primary_key for table in TABLES.values() if not table.is_bulk}


def keys_of(statements: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The keys declared by CREATE TABLE statements, by table."""
    found: dict[str, tuple[str, ...]] = {}
    for sql in statements:
        for table in TABLE.finditer(sql):
            if several := TABLE_KEY.search(table["body"]):
                found[table["name"]] = tuple(column.strip() for column in several["columns"].split(","))
            elif one := re.search(r"^\s*(\w+)\s[^\n]*\bPRIMARY KEY\b", table["body"], re.MULTILINE):
                found[table["name"]] = (one[1],)
    return found
