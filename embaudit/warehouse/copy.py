"""Copies a warehouse table by table into a new DuckDB file, for snapshots and vacuuming."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import duckdb

from embaudit.system.processors import threads_of_duckdb
from embaudit.warehouse.explain import translate_errors
from embaudit.warehouse.migrate import migrate

TARGET = "embaudit_copy"


def create_file(path: Path, config: dict[str, str]) -> None:
    """Create an empty warehouse with the current schema: tables with keys, and views."""
    with translate_errors(path), duckdb.connect(str(path), config=config | threads_of_duckdb()) as connection:
        migrate(connection, path)


def copy_tables(connection: duckdb.DuckDBPyConnection, path: Path, left_out: Collection[str] = ()) -> dict[str, int]:
    """Fill a created file with a consistent copy of the connection's warehouse; returns rows by table.

    Tables that exist in only one of the two are ignored: an older warehouse lacks some, and a lake has an extra one.
    Tables left out exist but are empty, so that views and queries work.
    """
    literal = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{literal}' AS {TARGET}")
    try:
        shared = _shared_tables(connection)
        for name in shared:
            # Replace rows inserted by migrations with the source's.
            connection.execute(f"DELETE FROM {TARGET}.main.{name}")
        counts = {}
        # One transaction, for a consistent state of the source. Nothing in a lake is written, so writers are not
        # blocked.
        connection.execute("BEGIN TRANSACTION")
        for name in shared:
            if name not in left_out:
                row = connection.execute(f"INSERT INTO {TARGET}.main.{name} BY NAME FROM {name}").fetchone()
                counts[name] = int(row[0]) if row else 0
        connection.execute("COMMIT")
        connection.execute(f"CHECKPOINT {TARGET}")
    except BaseException:
        connection.interrupt()
        # On a full disk detaching fails too; report the first error.
        for statement in ("ROLLBACK", f"DETACH {TARGET}"):
            with suppress(duckdb.Error, RuntimeError):
                connection.execute(statement)
        raise
    connection.execute(f"DETACH {TARGET}")
    return counts


def tables_of(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of the warehouse's tables."""
    found = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() ORDER BY 1"
    ).fetchall()
    return [name for (name,) in found]


def _shared_tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    target = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [TARGET]).fetchall()
    shared = {name for (name,) in target} & set(tables_of(connection))
    of_source, of_target = (
        connection.execute(f"SELECT version FROM {table} ORDER BY 1").fetchall()
        for table in ("schema_migration", f"{TARGET}.main.schema_migration")
    )
    if of_source != of_target:
        # A copy of an older warehouse has the current schema and must record it.
        shared.discard("schema_migration")
    return sorted(shared)
