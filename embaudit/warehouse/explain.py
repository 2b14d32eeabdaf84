"""Translates errors of DuckDB and the file system, and turns Ctrl-C back into a KeyboardInterrupt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from embaudit.system.address import Lake, Warehouse
from embaudit.warehouse.lake import is_unreachable
from embaudit.words.errors import StorageError, WarehouseError

# DuckDB has no error classes for these; the phrases are from duckdb 1.5.5.
DISK_SIGNS = ("No space left", "Disk quota", "ould not write", "File too large", "max_temp_directory_size")
PERMISSION_SIGNS = ("Permission denied", "permission denied", "Read-only file system", "Operation not permitted")


@contextmanager
def translate_errors(place: Warehouse) -> Iterator[None]:
    """Translate errors of DuckDB and the file system."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        raise explain(error, place) from error


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` for Ctrl-C during a query; DuckDB raises a RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        # duckdb 1.5.5 returns while its threads are still working, and closing waits for them until the query ends.
        connection.interrupt()
        raise KeyboardInterrupt from error


def explain(error: Exception, place: Warehouse) -> WarehouseError | StorageError:
    """Translate an error of DuckDB or the file system."""
    message = _postgres_message(error) if isinstance(place, Lake) else str(error).split("\n", 1)[0]
    is_full = any(sign in message for sign in DISK_SIGNS)
    if is_full or any(sign in message for sign in PERMISSION_SIGNS):
        return StorageError(
            f"Cannot write the warehouse {place}: {message}",
            kept="The published tables are unchanged, and all staged results are kept.",
            next_step=("Free some space" if is_full else "Fix the permissions") + " and run the same command again.",
        )
    if isinstance(place, Lake):
        return _translate_lake(error, message, place)
    if "not a valid DuckDB database" in message or "Is a directory" in message:
        return WarehouseError(
            f"{place} is not a DuckDB database.",
            kept="It was not changed, and staged results are kept.",
            next_step="Choose another file: --warehouse PATH",
        )
    return WarehouseError(
        f"DuckDB cannot use {place}: {message}",
        kept="Staged results are kept.",
        next_step="See: embaudit doctor",
    )


def no_warehouse(place: Warehouse) -> WarehouseError:
    """The error for a missing warehouse, or a folder in its place."""
    return WarehouseError(
        f"{place} is a folder, not a warehouse."
        if isinstance(place, Path) and place.is_dir()
        else f"There is no warehouse at {place}.",
        next_step="Create one (embaudit audit packaged:all-MiniLM-L6-v2), or give its path: --warehouse PATH",
    )


def _postgres_message(error: Exception) -> str:
    """PostgreSQL's message, or else DuckDB's, without the statement, which may be pages of rows."""
    said = re.findall(r"(?:ERROR|FATAL):\s+([^\n]+)", str(error))
    return str(said[-1]) if said else " ".join(str(error).split())[:300]


def _translate_lake(error: Exception, message: str, lake: Lake) -> WarehouseError:
    if "creating a new DuckLake is explicitly disabled" in message:
        return no_warehouse(lake)
    if "does not match existing data path" in message:
        return WarehouseError(
            f"The DuckLake {lake} has its data files in another folder: {message}",
            kept="Nothing was changed; staged results are kept.",
            next_step="Correct data_path in the address.",
        )
    if is_unreachable(error) or "Unable to connect to Postgres" in str(error):
        # PostgreSQL's own message comes after the last "failed:"; the address appears twice before that.
        reason = str(error).rpartition("failed: ")[2].strip().split("\n", 1)[0]
        return WarehouseError(
            f"PostgreSQL with the catalog of {lake} cannot be reached: {reason}.",
            kept="Staged results are kept.",
            next_step="Start it or correct the address, and run the same command again. Passwords are read from "
            "PGPASSWORD, PGPASSFILE or a service (service=NAME).",
        )
    return WarehouseError(
        f"DuckDB cannot use {lake}: {message}",
        kept="The published tables are unchanged, and staged results are kept.",
        next_step="Run the same command again; see also: embaudit doctor",
    )
