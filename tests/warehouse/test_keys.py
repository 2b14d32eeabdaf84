"""Tables without keys, for a DuckLake: the migrations' own statements, and the keys that they declare."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.keys import keys_of, primary_keys, without_keys
from embaudit.warehouse.migrate import Migration, known_migrations


@pytest.mark.parametrize("migration", known_migrations(), ids=lambda one: f"{one.version:03}")
def test_a_migration_without_keys_is_the_same_but_for_them(migration: Migration) -> None:
    """All of them are laid: a later one alters the tables of an earlier one."""
    keyed, keyless = duckdb.connect(), duckdb.connect()
    for one in known_migrations():
        if one.version <= migration.version:
            keyed.execute(one.sql)
            keyless.execute(without_keys(one.sql))

    def columns(connection: duckdb.DuckDBPyConnection) -> list[Any]:
        return connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() ORDER BY ALL"
        ).fetchall()

    assert columns(keyless) == columns(keyed)
    constraints = "SELECT 1 FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
    assert keyless.execute(constraints).fetchall() == []


def test_the_keys_that_are_read_off_the_text_are_duckdbs() -> None:
    connection = duckdb.connect()
    for one in known_migrations():
        connection.execute(one.sql)
    connection.execute(migrations.RECORD_TABLE)
    found = connection.execute(
        "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
    ).fetchall()
    expected = {name: tuple(columns) for name, columns in found}
    assert {**primary_keys(), **keys_of([migrations.RECORD_TABLE])} == expected
