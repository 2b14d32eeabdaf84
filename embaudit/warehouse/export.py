"""Exports a consistent, read-only copy of the warehouse for dashboards: a DuckDB file or a folder of Parquet files.

Reading the copy blocks nobody. Exporting reads the warehouse like a query: the writer of a file waits for a few
seconds, that of a lake does not.

Replaces exports atomically while others read the previous one; one export per destination at a time.

Copies a warehouse table by table into a new DuckDB file, for snapshots and vacuuming.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import duckdb
from filelock import FileLock, Timeout

from embaudit.system.files import move_into_place, replace_atomically, temporary_folder
from embaudit.system.processors import threads_of_duckdb
from embaudit.system.settings import Lake, Warehouse, warehouse_at
from embaudit.warehouse.connect import WRITER, open_source
from embaudit.warehouse.lake import DISK_SIGNS, WRITER_TABLE, translate_errors
from embaudit.warehouse.migrate import migrate
from embaudit.warehouse.tables import TABLES
from embaudit.words.errors import StorageError, UsageError, WarehouseError

CURRENT = "current"
VERSION_PREFIX = "export-"
# A partial file may belong to a running export if it is younger than this.
ABANDONED_SECONDS = 6 * 3600.0


@contextmanager
def new_file(destination: Path) -> Iterator[Path]:
    """A path to write a new DuckDB file to; at the end it is made read-only and moved to ``destination``."""
    with temporary_folder(destination) as folder:
        made = folder / destination.name
        yield made
        move_into_place(made, destination, mode=0o444)
    # The log of an old copy opened for writing: DuckDB would apply it to the new file.
    destination.with_name(f"{destination.name}.wal").unlink(missing_ok=True)


@contextmanager
def new_version(destination: Path, keep: int) -> Iterator[Path]:
    """A folder to write to; at the end ``destination/current`` points to it, and the ``keep`` newest are kept."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    version = destination / f"{VERSION_PREFIX}{stamp}"
    with replace_atomically(version) as made:
        made.mkdir()
        yield made
    with replace_atomically(destination / CURRENT) as link:
        link.symlink_to(version.name)
    for old in sorted(destination.glob(f"{VERSION_PREFIX}*"))[:-keep]:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def one_at_a_time(destination: Path, wait_seconds: float) -> Iterator[None]:
    """Serialise exports to one destination, so that an older state never replaces a newer one."""
    lock = FileLock(destination.parent / f".{destination.name}.lock")
    try:
        lock.acquire(wait_seconds)
    except Timeout as error:
        raise StorageError(
            f"Another process has been exporting to {destination} for {wait_seconds:.0f} seconds.",
            kept="The earlier copy is unchanged.",
            next_step="Try again when it has finished.",
        ) from error
    try:
        yield
    finally:
        lock.release()


def abandoned(destination: Path) -> list[Path]:
    """Partial files and folders of killed exports to ``destination`` or names starting with it."""
    oldest = time.time() - ABANDONED_SECONDS
    partial = destination.parent.glob(f".{destination.name}*.partial")
    return [path for path in partial if path.stat().st_mtime < oldest]


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


Form = Literal["duckdb", "parquet"]
FILE_ENDINGS = {".duckdb", ".db", ".ddb"}
DEFAULT_KEEP = 3


@dataclass(frozen=True)
class Export:
    """The result of an export.

    Attributes:
        path: the file, or the folder of this version.
        rows: by table, without tables that were left out.
        bytes: size on disk.
    """

    path: Path
    rows: dict[str, int]
    bytes: int


def form_of(destination: Path) -> Form:
    """DuckDB for a database's file name, otherwise a folder of Parquet files."""
    return "duckdb" if destination.suffix.lower() in FILE_ENDINGS else "parquet"


def export(
    warehouse: Warehouse | str,
    destination: Path,
    wait_seconds: float,
    *,
    form: Form | None = None,
    tables: Sequence[str] | None = None,
    with_bulk: bool = True,
    keep: int = DEFAULT_KEEP,
) -> Export:
    """Copy the warehouse consistently, and replace an earlier copy atomically.

    Args:
        tables: only these; in a DuckDB copy the others exist but are empty, so that views and queries work.
        with_bulk: include the bulk tables, which have millions of rows per audit.
        keep: number of versions to keep in a folder.

    Raises:
        UsageError: if a table does not exist, or the destination is the warehouse itself or not an export.
        WarehouseError: as ``open_reader``.
        StorageError: if the copy cannot be written.
    """
    place = warehouse_at(warehouse)
    destination = destination.expanduser().absolute()
    form = form or form_of(destination)
    _require_free(place, destination, form)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(destination, wait_seconds), open_source(place, wait_seconds) as connection:
            for left in abandoned(destination) if form == "duckdb" else abandoned(destination / VERSION_PREFIX):
                shutil.rmtree(left, ignore_errors=True)
            left_out = _left_out(tables_of(connection), tables, with_bulk)
            if form == "duckdb":
                return _to_file(connection, destination, left_out)
            return _to_folder(connection, destination, left_out, keep)
    except OSError as error:
        raise _cannot_write(destination, str(error)) from error


def _to_file(connection: duckdb.DuckDBPyConnection, destination: Path, left_out: set[str]) -> Export:
    with _disk_named(destination), new_file(destination) as path:
        create_file(path, WRITER)
        rows = copy_tables(connection, path, left_out)
    return Export(destination, rows, destination.stat().st_size)


def _to_folder(connection: duckdb.DuckDBPyConnection, destination: Path, left_out: set[str], keep: int) -> Export:
    rows = {}
    with _disk_named(destination), new_version(destination, keep) as folder:
        connection.execute("BEGIN TRANSACTION")
        for name in tables_of(connection):
            if name in left_out or name == WRITER_TABLE:
                continue
            target = str(folder / f"{name}.parquet").replace("'", "''")
            row = connection.execute(f"COPY (FROM {name}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)").fetchone()
            rows[name] = int(row[0]) if row else 0
        connection.execute("COMMIT")
    version = (destination / CURRENT).resolve()
    return Export(version, rows, sum(file.stat().st_size for file in version.iterdir()))


def _left_out(known: Sequence[str], tables: Sequence[str] | None, with_bulk: bool) -> set[str]:
    for name in tables or ():
        if name not in known:
            raise UsageError(f"The warehouse has no table {name!r}.", next_step=f"Choose from: {', '.join(known)}.")
    left_out = set(known) - set(tables) if tables else set()
    if not with_bulk:
        left_out |= {table.name for table in TABLES.values() if table.is_bulk}
    # Without the schema version the copy would not be a warehouse.
    return left_out - {"schema_migration"}


def _require_free(place: Warehouse, destination: Path, form: Form) -> None:
    """Refuse to replace anything but an earlier copy."""
    if isinstance(place, Path) and destination.resolve() == place.resolve():
        raise UsageError("That is the warehouse itself.", next_step="Choose another file for the copy.")
    if isinstance(place, Lake) and place.data_path.resolve() in (destination.resolve(), *destination.resolve().parents):
        raise UsageError("That is inside the warehouse's data folder.", next_step="Choose another folder.")
    if form == "duckdb":
        if destination.is_dir():
            raise UsageError(f"{destination} is a folder.", next_step="Choose a file, or: --format parquet")
        if destination.exists() and destination.stat().st_mode & 0o222:
            raise UsageError(
                f"{destination} already exists and is not an export: it is writable.",
                kept="It was not changed.",
                next_step="Move it or choose another file.",
            )
        return
    if destination.is_file():
        raise UsageError(f"{destination} is a file.", next_step="Choose a folder, or: --format duckdb")
    own = (CURRENT, VERSION_PREFIX, ".")
    if destination.is_dir() and any(not path.name.startswith(own) for path in destination.iterdir()):
        raise UsageError(
            f"The folder {destination} contains something other than exports.",
            kept="It was not changed.",
            next_step="Choose an empty or new folder.",
        )


@contextmanager
def _disk_named(destination: Path) -> Iterator[None]:
    """Report a full disk for the copy, not the warehouse."""
    try:
        yield
    except (duckdb.Error, WarehouseError, StorageError) as error:
        if isinstance(error, StorageError) or any(sign in str(error) for sign in DISK_SIGNS):
            raise _cannot_write(destination, str(error).split("\n", 1)[0]) from error
        raise


def _cannot_write(destination: Path, why: str) -> StorageError:
    return StorageError(
        f"Cannot write the copy {destination}: {why}",
        kept="The warehouse and any earlier copy are unchanged.",
        next_step="Free some space, or choose another location.",
    )
