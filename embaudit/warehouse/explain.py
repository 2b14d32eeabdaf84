"""What DuckDB and the file system raise, in this project's words; and Ctrl-C as a KeyboardInterrupt again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from embaudit.address import Lake, Warehouse
from embaudit.errors import StorageError, WarehouseError
from embaudit.warehouse.lake import is_unreachable

# DuckDB has no error classes for these; the words were read off duckdb 1.5.5.
DISK_SIGNS = ("No space left", "Disk quota", "ould not write", "File too large", "max_temp_directory_size")
PERMISSION_SIGNS = ("Permission denied", "permission denied", "Read-only file system", "Operation not permitted")


@contextmanager
def explained(place: Warehouse) -> Iterator[None]:
    """DuckDB's and the file system's errors leave as this project's."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        raise explain(error, place) from error


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Ctrl-C while DuckDB works is a ``KeyboardInterrupt`` again; DuckDB makes a RuntimeError of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        # duckdb 1.5.5 returns while its threads still work, and closing waits for them to the end of the query.
        connection.interrupt()
        raise KeyboardInterrupt from error


def explain(error: Exception, place: Warehouse) -> WarehouseError | StorageError:
    """An error of DuckDB or the file system in this project's words."""
    message = _postgres_message(error) if isinstance(place, Lake) else str(error).split("\n", 1)[0]
    is_full = any(sign in message for sign in DISK_SIGNS)
    if is_full or any(sign in message for sign in PERMISSION_SIGNS):
        return StorageError(
            f"Cannot write the warehouse {place}: {message}",
            kept="The published tables are as they were, and all staged results are kept.",
            next_step=("Make room" if is_full else "Fix the permission")
            + " and run the same command again: it only has to publish.",
        )
    if isinstance(place, Lake):
        return _explain_lake(error, message, place)
    if "not a valid DuckDB database" in message or "Is a directory" in message:
        return WarehouseError(
            f"{place} is no DuckDB database.",
            kept="It was not touched, and staged results are kept.",
            next_step="Name another file: --warehouse PATH",
        )
    return WarehouseError(
        f"DuckDB cannot use {place}: {message}",
        kept="Staged results are kept.",
        next_step="embaudit doctor says more.",
    )


def no_warehouse(place: Warehouse) -> WarehouseError:
    """Nothing is there; a folder is not either."""
    return WarehouseError(
        f"{place} is a folder, not a warehouse."
        if isinstance(place, Path) and place.is_dir()
        else f"There is no warehouse at {place}.",
        next_step="Make one (embaudit audit packaged:all-MiniLM-L6-v2), or name it: --warehouse PATH",
    )


def _postgres_message(error: Exception) -> str:
    """What PostgreSQL said, or else DuckDB: without the statement between them, which may be pages of rows."""
    said = re.findall(r"(?:ERROR|FATAL):\s+([^\n]+)", str(error))
    return str(said[-1]) if said else " ".join(str(error).split())[:300]


def _explain_lake(error: Exception, message: str, lake: Lake) -> WarehouseError:
    if "creating a new DuckLake is explicitly disabled" in message:
        return no_warehouse(lake)
    if "does not match existing data path" in message:
        return WarehouseError(
            f"The DuckLake of {lake} has its data files in another folder: {message}",
            kept="Nothing was changed; staged results are kept.",
            next_step="Correct data_path in the address.",
        )
    if is_unreachable(error) or "Unable to connect to Postgres" in str(error):
        # What PostgreSQL itself says stands behind the last "failed:"; before it the address comes twice.
        reason = str(error).rpartition("failed: ")[2].strip().split("\n", 1)[0]
        return WarehouseError(
            f"PostgreSQL, which has the catalog of {lake}, cannot be reached: {reason.rstrip('.')}.",
            kept="Staged results are kept.",
            next_step="Start it or correct the address, and run the same command again. Passwords come from "
            "PGPASSWORD, PGPASSFILE or a service (service=NAME).",
        )
    return WarehouseError(
        f"DuckDB cannot use {lake}: {message}",
        kept="The published tables are as they were, and staged results are kept.",
        next_step="Run the same command again; embaudit doctor says more.",
    )
