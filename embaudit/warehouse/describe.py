"""Writes the declared descriptions as comments into the warehouse (see ``duckdb_columns()``)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from embaudit.tables import TABLES
from embaudit.warehouse.transaction import transaction

if TYPE_CHECKING:
    import duckdb

# The table whose comment records which descriptions were written.
RECORD = "schema_migration"


def describe_tables(connection: duckdb.DuckDBPyConnection, *, even_if_there: bool) -> None:
    """Comment on every published table and column, unless the comments are up to date.

    Writing them takes a quarter of a second, and a lake keeps every change in its history.

    Args:
        even_if_there: write them anyway, because the tables have changed.
    """
    statements = _statements()
    mark = f"Columns are described by embaudit {hashlib.sha256(statements.encode()).hexdigest()[:16]}."
    found = connection.execute(
        "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND table_name = ?", [RECORD]
    ).fetchone()
    if even_if_there or found != (mark,):
        with transaction(connection):
            connection.execute(f"{statements};\nCOMMENT ON TABLE {RECORD} IS {_literal(mark)}")


def _statements() -> str:
    lines = []
    for table in TABLES.values():
        lines.append(f"COMMENT ON TABLE {table.name} IS {_literal(table.meaning)}")
        lines += [
            f'COMMENT ON COLUMN {table.name}."{column.name}" IS {_literal(column.comment)}'
            for column in table.columns.values()
        ]
    return ";\n".join(lines)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
