"""Published tables in a warehouse, as their row classes declare them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from embaudit.declared.table import DeclaredTable
from embaudit.system.address import Warehouse
from embaudit.warehouse.tables import TABLES
from embaudit.words.errors import WarehouseError

if TYPE_CHECKING:
    import duckdb

COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() WHERE database_name = current_database()
"""
# Columns of earlier snapshots. Endpoints and indexes are questions like others, and counted among the answers.
FORMER = {"watch_run": ("endpoints", "indexes")}


def table_changes(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> list[str]:
    """The statements after which the warehouse has every declared table and column; none if it has them.

    A column that was declared later is null in the rows from before it, whatever it may be in new ones.

    Raises:
        WarehouseError: if a table of that name cannot take the declared rows: it is somebody else's, or a column's type
            has changed.
    """
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for table, column, kind, is_nullable in connection.execute(COLUMNS).fetchall():
        found.setdefault(table, {})[column] = kind, is_nullable
    return [change for table in TABLES.values() for change in _changes_of(table, found.get(table.name), place)]


def _changes_of(table: DeclaredTable, columns: dict[str, tuple[str, bool]] | None, place: Warehouse) -> Iterator[str]:
    if columns is None:
        yield table.ddl
        return
    stored = table.stored
    for name, kind in stored.items():
        if name in columns and columns[name][0] != kind:
            raise _other(table, place, f"{name} is {columns[name][0]} and not {kind}")
        if name not in columns:
            if name in table.primary_key:
                raise _other(table, place, f"it has no column {name}")
            yield f'ALTER TABLE {table.name} ADD COLUMN "{name}" {kind};'
    for name, (_, is_nullable) in columns.items():
        if name in FORMER.get(table.name, ()):
            yield f'ALTER TABLE {table.name} DROP COLUMN "{name}";'
        elif name not in stored and not is_nullable:
            raise _other(table, place, f"{name} must not be null, and is not declared")


def _other(table: DeclaredTable, place: Warehouse, why: str) -> WarehouseError:
    return WarehouseError(
        f"The table {table.name} of the warehouse {place} is not the one that this embaudit writes: {why}.",
        kept="Nothing was changed; staged results are kept.",
        next_step="Move that file or choose another warehouse (--warehouse PATH), and run the same command again: only "
        "publishing is left.",
    )
