"""Writes what tables and columns mean as comments into the warehouse (see ``duckdb_columns()``)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from embaudit.warehouse.lake import is_lake, literal
from embaudit.warehouse.meanings import meanings_of_columns, meanings_of_tables, written
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import transaction

if TYPE_CHECKING:
    import duckdb

# The table whose comment ends with a hash of what was written.
RECORD = "schema_migration"
COLUMNS = "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = current_database()"


def describe(connection: duckdb.DuckDBPyConnection, views: dict[str, str], *, even_if_there: bool) -> None:
    """Comment on every table, and on every column of tables and of a file's views, unless the comments are up to date.

    Writing them takes half a second, and a lake keeps every change in its history.

    Args:
        views: their statements by name.
        even_if_there: write them anyway, because tables or views have changed.
    """
    mark = marked("", "\n".join([*_declared(), written(), *views.values()]))
    found = connection.execute(
        "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND table_name = ?", [RECORD]
    ).fetchone()
    if not even_if_there and found and str(found[0]).endswith(mark):
        return
    stored: dict[str, list[str]] = {}
    for name, column in connection.execute(COLUMNS).fetchall():
        stored.setdefault(name, []).append(column)
    # DuckLake takes comments on views, but not on their columns.
    silent = set(views) if is_lake(connection) else set()
    tables = meanings_of_tables()
    tables[RECORD] += f" {mark}"
    statements = [f"COMMENT ON TABLE {name} IS {literal(text)}" for name, text in tables.items() if name in stored]
    statements += [
        f'COMMENT ON COLUMN {name}."{column}" IS {literal(text)}'
        for name, meanings in meanings_of_columns(views, stored).items()
        if name not in silent
        for column, text in meanings.items()
    ]
    with transaction(connection):
        connection.execute(";\n".join(statements))


def marked(meaning: str, made_from: str) -> str:
    """A comment by which it can be told whether what it is about is up to date."""
    return f"{meaning} (embaudit {hashlib.sha256(made_from.encode()).hexdigest()[:16]})".strip()


def _declared() -> list[str]:
    columns = (column for table in TABLES.values() for column in table.columns.values())
    return [*(table.meaning for table in TABLES.values()), *(f"{column.name} {column.comment}" for column in columns)]
