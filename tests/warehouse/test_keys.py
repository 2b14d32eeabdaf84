"""Tables without keys, for a DuckLake: the same statements, and the keys that they declare."""

from __future__ import annotations

from typing import Any

import duckdb
from made_up_migrations import FIRST, SECOND

from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.migrate import known_migrations
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import keys_of, primary_keys, without_keys


def test_the_schema_without_keys_is_the_same_but_for_them() -> None:
    """What a later migration may do is among it: another table, another column."""
    keyed, keyless = duckdb.connect(), duckdb.connect()
    for sql in (*(table.ddl for table in TABLES.values()), *(one.sql for one in (*known_migrations(), FIRST, SECOND))):
        keyed.execute(sql)
        keyless.execute(without_keys(sql))

    def columns(connection: duckdb.DuckDBPyConnection) -> list[Any]:
        return connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() ORDER BY ALL"
        ).fetchall()

    assert columns(keyless) == columns(keyed)
    constraints = "SELECT 1 FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
    assert keyless.execute(constraints).fetchall() == []


def test_the_keys_that_are_read_off_the_text_are_duckdbs() -> None:
    connection = duckdb.connect()
    for sql in (*(table.ddl for table in TABLES.values()), *(one.sql for one in known_migrations())):
        connection.execute(sql)
    connection.execute(migrations.RECORD_TABLE)
    found = connection.execute(
        "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
    ).fetchall()
    expected = {name: tuple(columns) for name, columns in found}
    assert {**primary_keys(), **keys_of([migrations.RECORD_TABLE])} == expected
