"""A DuckLake as the warehouse: extensions from packages, the attached catalog, and the writers' lock.

DuckLake allows concurrent writers and does not treat two inserts as a conflict, so content inserted by both would be
duplicated. Writers therefore take a PostgreSQL advisory lock, which is released with the connection if a process is
killed, and every transaction updates one row (``embaudit_writer``), so that two that still overlap conflict and one is
retried.

Errors of DuckDB, of a lake or a file, are translated, and Ctrl-C is turned back into a KeyboardInterrupt.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from embaudit.system.settings import Lake, Warehouse
from embaudit.words.errors import StorageError, WarehouseError

EXTENSIONS = ("postgres_scanner", "ducklake")
# The attached catalog's name in DuckDB, used for unqualified table names.
DATABASE = "warehouse"
WRITER_TABLE = "embaudit_writer"
# Messages of duckdb 1.5.5 if the catalog's database is temporarily unreachable.
UNREACHABLE_SIGNS = (
    "Connection refused",
    "could not connect",
    "the database system is starting up",
    "the database system is shutting down",
    "terminating connection",
    "server closed the connection",
    "timeout expired",
    "too many clients",
)


def load_extensions(connection: duckdb.DuckDBPyConnection) -> None:
    """Load DuckLake from the installed packages; nothing is downloaded.

    Raises:
        WarehouseError: if the packages are missing or for another DuckDB version.
    """
    for name in EXTENSIONS:
        connection.execute(f"LOAD {literal(str(extension_file(name)))}")


def attach(connection: duckdb.DuckDBPyConnection, lake: Lake, *, read_only: bool) -> None:
    """Attach the lake as the default for unqualified names; a writer creates a missing one."""
    options = [f"METADATA_SCHEMA {literal(lake.schema)}"]
    # A reader uses the folder in the catalog: it must not create a lake.
    options += ["READ_ONLY"] if read_only else [f"DATA_PATH {literal(f'{lake.data_path}/')}"]
    catalog = literal(f"ducklake:postgres:{lake.connection}")
    connection.execute(f"ATTACH {catalog} AS {DATABASE} ({', '.join(options)})")
    connection.execute(f"USE {DATABASE}")


def try_lock(connection: duckdb.DuckDBPyConnection, lake: Lake) -> duckdb.DuckDBPyConnection | None:
    """Take the writers' lock, held until the returned connection is closed; None if another writer has it."""
    holder = connection.cursor()
    try:
        holder.execute("ATTACH IF NOT EXISTS " + literal(lake.connection) + " AS queue (TYPE postgres, READ_ONLY)")
        holder.execute("BEGIN TRANSACTION")
        asked = f"SELECT pg_try_advisory_xact_lock({_lock_number(lake)}) AS taken"
        row = holder.execute(f"SELECT taken FROM postgres_query('queue', {literal(asked)})").fetchone()
        if row and row[0]:
            return holder
        holder.execute("ROLLBACK")
    except BaseException:
        holder.close()
        raise
    holder.close()
    return None


@contextmanager
def release_at_end(holder: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Release the lock at the end, whatever happens."""
    try:
        yield
    finally:
        with suppress(duckdb.Error, RuntimeError):
            holder.execute("ROLLBACK")
        holder.close()


def is_lake(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether this connection's default is a DuckLake, without keys and INSERT OR REPLACE."""
    row = connection.execute("SELECT type FROM duckdb_databases() WHERE database_name = current_database()").fetchone()
    return bool(row) and row[0] == "ducklake"


def touch(connection: duckdb.DuckDBPyConnection) -> None:
    """Make this transaction conflict with every other writer's."""
    connection.execute(f"UPDATE {WRITER_TABLE} SET writes = writes + 1")


def make_writer_row(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the row that all writers update; requires the writers' lock."""
    known = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() AND table_name = ?", [WRITER_TABLE]
    ).fetchone()
    if not known:
        connection.execute(f"CREATE TABLE {WRITER_TABLE} AS SELECT 0::BIGINT AS writes")


def is_unreachable(error: BaseException) -> bool:
    """Whether PostgreSQL did not answer, so that a retry may help."""
    return any(sign in str(error) for sign in UNREACHABLE_SIGNS)


def is_conflict(error: BaseException) -> bool:
    """Whether another writer was first, so that the transaction can be retried."""
    while error.__cause__ is not None and not isinstance(error, duckdb.Error):
        error = error.__cause__
    return isinstance(error, duckdb.TransactionException) and "conflict" in str(error)


def extension_file(name: str) -> Path:
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    if found is None or found.origin is None:
        raise WarehouseError(
            f"A DuckLake needs DuckDB's extension {name}, but its package is not installed.",
            next_step="pip install 'embaudit[ducklake]' "
            "(in the checkout: pip install -c requirements.lock -e '.[ducklake]')",
        )
    version = f"v{duckdb.__version__}"
    file = Path(found.origin).parent / "extensions" / version / f"{name}.duckdb_extension"
    if not file.is_file():
        raise WarehouseError(
            f"The installed package of DuckDB's extension {name} is not for DuckDB {duckdb.__version__}.",
            next_step="pip install -c requirements.lock 'embaudit[ducklake]'",
        )
    return file


def _lock_number(lake: Lake) -> int:
    """The number of this lake's advisory lock; PostgreSQL has one namespace per database."""
    digest = hashlib.sha256(f"embaudit warehouse {lake.schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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
