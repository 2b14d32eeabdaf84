"""A warehouse copied table by table into a new DuckDB file: what snapshots and rewritten warehouses are made of."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import duckdb

from embaudit.warehouse.explain import explained
from embaudit.warehouse.migrate import migrate

TARGET = "embaudit_copy"


def create_file(path: Path, config: dict[str, str]) -> None:
    """An empty warehouse of this program's schema: tables with keys, views."""
    with explained(path), duckdb.connect(str(path), config=config) as connection:
        migrate(connection, path)


def copy_tables(connection: duckdb.DuckDBPyConnection, path: Path, left_out: Collection[str] = ()) -> dict[str, int]:
    """Fill a laid file from the connection's warehouse, as it is at one moment; returns rows by table.

    A table that only one of the two knows is left as it is: an older warehouse lacks some, and a lake has one of its
    own. Those left out are there, and empty, so that views and queries work.
    """
    literal = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{literal}' AS {TARGET}")
    try:
        shared = _shared_tables(connection)
        for name in shared:
            # What the migrations brought: the source has it too, as it is there now.
            connection.execute(f"DELETE FROM {TARGET}.main.{name}")
        counts = {}
        # One transaction is one moment of the source. Of a lake nothing is written: its writers do not notice.
        connection.execute("BEGIN TRANSACTION")
        for name in shared:
            if name not in left_out:
                row = connection.execute(f"INSERT INTO {TARGET}.main.{name} BY NAME FROM {name}").fetchone()
                counts[name] = int(row[0]) if row else 0
        connection.execute("COMMIT")
        connection.execute(f"CHECKPOINT {TARGET}")
    except BaseException:
        connection.interrupt()
        # On a full disk detaching fails too; the first error is the one to report.
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
        # The copy of an older warehouse has this program's schema, and its record says so.
        shared.discard("schema_migration")
    return sorted(shared)
