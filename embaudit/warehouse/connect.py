"""Opens the warehouse, briefly for writing or read-only, waiting while it is locked.

A DuckDB file has one process at a time that writes; a DuckLake one writer at a time, and readers at any time.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

import duckdb
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception,
    retry_if_result,
    stop_after_delay,
    wait_exponential,
    wait_random_exponential,
)

from embaudit.system.files import temporary_folder
from embaudit.system.processors import threads_of_duckdb
from embaudit.system.settings import Lake, Warehouse, warehouse_at
from embaudit.warehouse.lake import (
    DATABASE,
    attach,
    interruptible,
    is_unreachable,
    load_extensions,
    make_writer_row,
    no_warehouse,
    release_at_end,
    translate_errors,
    try_lock,
)
from embaudit.warehouse.migrate import migrate, require_known_version
from embaudit.words.errors import WarehouseError

LAKE_PAUSE_SECONDS = 2.0
T = TypeVar("T")


@contextmanager
def open_lake_writer(lake: Lake, wait_seconds: float, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The only writing connection, migrated; other writers wait, readers do not."""
    deadline = time.monotonic() + wait_seconds
    with translate_errors(lake):
        lake.data_path.mkdir(parents=True, exist_ok=True)
        connection = connect_memory(memory)
        try:
            load_extensions(connection)
            # Lock before attaching, so that only one process creates a missing lake.
            holder = _retry_until(deadline, lambda: try_lock(connection, lake))
            if holder is None:
                raise WarehouseError(
                    f"Other writers have kept the warehouse {lake} locked for {wait_seconds:.0f} seconds.",
                    kept="The published tables are unchanged, and all staged results are kept.",
                    next_step="Run the same command again. To wait longer: EMBAUDIT_LOCK_WAIT_SECONDS.",
                )
            with release_at_end(holder), interruptible(connection):
                attach(connection, lake, read_only=False)
                require_known_version(connection, lake)
                make_writer_row(connection)
                migrate(connection, lake)
                yield connection
        finally:
            connection.close()


@contextmanager
def open_lake_reader(lake: Lake, wait_seconds: float, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection that can only access the PostgreSQL catalog and the folder of the data files."""
    with open_lake_source(lake, wait_seconds, memory) as connection:
        with translate_errors(lake):
            folder = str(lake.data_path).replace("'", "''")
            connection.execute(f"SET allowed_directories = ['{folder}/']")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        yield connection


@contextmanager
def open_lake_source(lake: Lake, wait_seconds: float, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same without restrictions on files, for this program's own statements (exports)."""
    deadline = time.monotonic() + wait_seconds
    connection = connect_memory(memory)

    def attached() -> bool:
        attach(connection, lake, read_only=True)
        return True

    try:
        with translate_errors(lake):
            load_extensions(connection)
            _retry_until(deadline, attached)
            if require_known_version(connection, lake) == 0:
                raise WarehouseError(
                    f"{lake} is a DuckLake but not an embaudit warehouse.",
                    next_step="Give the warehouse: --warehouse ADDRESS",
                )
        with interruptible(connection):
            yield connection
    finally:
        connection.close()


def connect_memory(memory: str) -> duckdb.DuckDBPyConnection:
    """A connection without a database file, to attach databases to."""
    config = {
        "memory_limit": memory,
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # Without a database file it would spill into the working directory.
        "temp_directory": str(Path(tempfile.gettempdir()) / f"embaudit-spill-{os.getpid()}"),
        **threads_of_duckdb(),
    }
    connection = duckdb.connect(":memory:", config=config)
    # It would be drawn on stdout, among rows read by a program.
    connection.execute("SET enable_progress_bar = false")
    return connection


def _retry_until(deadline: float, attempt: Callable[[], T | None]) -> T | None:
    """Retry with growing pauses until there is a result; also if the server does not answer.

    None at the deadline, or raises the last attempt's error.
    """
    # Random pauses, so that machines publishing after the same nightly run do not stay in step.
    growing = wait_random_exponential(multiplier=0.1, max=LAKE_PAUSE_SECONDS)
    try:
        return Retrying(
            retry=retry_if_result(lambda found: found is None) | retry_if_exception(is_unreachable),
            stop=lambda state: time.monotonic() >= deadline,
            wait=lambda state: max(0.01, min(growing(state), deadline - time.monotonic())),
        )(attempt)
    except RetryError as error:
        if error.last_attempt.failed:
            error.reraise()
        return None


# Enough for twelve million rows in one transaction; the rest spills to disk next to the warehouse.
WRITER_MEMORY = "1GB"
WRITER = {"memory_limit": WRITER_MEMORY, "preserve_insertion_order": "false"}
# For readers of a lake, which have no file; readers of a file use DuckDB's default.
READER_MEMORY = "4GB"
# Locked from the start: readers of one file in one process share settings, so a second one could not set any.
READER = {"enable_external_access": "false", "lock_configuration": "true"}
MAX_PAUSE_SECONDS = 5.0
Opened: TypeAlias = AbstractContextManager[duckdb.DuckDBPyConnection]


def open_writer(place: Warehouse | str, wait_seconds: float) -> Opened:
    """The only writing connection, migrated to the current schema; keep it open briefly.

    Raises:
        WarehouseError: if another process keeps it locked, or it was written by a newer embaudit.
        StorageError: if the disk is full or not writable.
    """
    at = warehouse_at(place)
    if isinstance(at, Lake):
        return open_lake_writer(at, wait_seconds, WRITER_MEMORY)
    return _open_file_writer(at, wait_seconds)


def open_reader(place: Warehouse | str, wait_seconds: float = 5.0) -> Opened:
    """A read-only connection that can neither access other files nor change settings.

    Raises:
        WarehouseError: if there is no warehouse, or it is locked or newer.
    """
    at = warehouse_at(place)
    if isinstance(at, Lake):
        return open_lake_reader(at, wait_seconds, READER_MEMORY)
    return _open_file_reader(at, wait_seconds)


def open_source(place: Warehouse | str, wait_seconds: float) -> Opened:
    """The warehouse read-only, on a connection that can write other files: for exports, never for user SQL.

    Raises:
        WarehouseError: as ``open_reader``.
    """
    at = warehouse_at(place)
    if isinstance(at, Lake):
        return open_lake_source(at, wait_seconds, WRITER_MEMORY)
    return _open_file_source(at, wait_seconds)


@contextmanager
def _open_file_source(path: Path, wait_seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    if not path.is_file():
        raise no_warehouse(path)
    # A read-only connection to the file itself could not attach another file for writing.
    connection = connect_memory(WRITER_MEMORY)
    literal = str(path).replace("'", "''")
    try:
        with translate_errors(path):
            attached = _retry(wait_seconds, lambda: connection.execute(f"ATTACH '{literal}' AS {DATABASE} (READ_ONLY)"))
            if attached is None:
                raise _locked_for_writing(path)
            connection.execute(f"USE {DATABASE}")
            _require_warehouse(connection, path)
        with interruptible(connection):
            yield connection
    finally:
        connection.close()


@contextmanager
def _open_file_writer(path: Path, wait_seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    with translate_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        connection = _connect(path, wait_seconds, read_only=False, config=WRITER)
        if connection is None:
            raise WarehouseError(
                f"Another process has had the warehouse {path} open for {wait_seconds:.0f} s.",
                kept="The published tables are unchanged, and all staged results are kept.",
                next_step="Close that program (a DuckDB shell or dashboard?) and run the same command again.",
            )
        try:
            with interruptible(connection):
                migrate(connection, path)
                yield connection
        finally:
            connection.close()


@contextmanager
def _open_file_reader(path: Path, wait_seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    if not path.is_file():
        raise no_warehouse(path)
    with translate_errors(path):
        connection = _connect(path, wait_seconds, read_only=True, config=READER)
    if connection is None:
        raise _locked_for_writing(path)
    try:
        with translate_errors(path):
            _require_warehouse(connection, path)
        with interruptible(connection):
            yield connection
    finally:
        connection.close()


def _locked_for_writing(path: Path) -> WarehouseError:
    return WarehouseError(
        f"Another process has the warehouse {path} open for writing.",
        next_step="Audits publish within a minute: try again, or close that program.",
    )


def _require_warehouse(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    if require_known_version(connection, path) == 0:
        raise WarehouseError(
            f"{path} is a DuckDB database but not an embaudit warehouse.",
            next_step="Give the warehouse: --warehouse PATH",
        )


def _create(path: Path) -> None:
    """Create a warehouse under a temporary name: a kill or full disk would leave a broken file."""
    with temporary_folder(path) as folder:
        with duckdb.connect(str(folder / path.name), config=WRITER | threads_of_duckdb()) as connection:
            migrate(connection, path)
            connection.execute("CHECKPOINT")
        try:
            path.hardlink_to(folder / path.name)
        except FileExistsError:
            pass  # Another process created it first.
        except OSError:
            # The file system has no hard links.
            if not path.exists():
                (folder / path.name).rename(path)


def _connect(
    path: Path, wait_seconds: float, *, read_only: bool, config: Mapping[str, str]
) -> duckdb.DuckDBPyConnection | None:
    """Connect, retrying while another connection has the file open; None on timeout."""
    settings = {**config, **threads_of_duckdb()}
    connection = _retry(wait_seconds, lambda: duckdb.connect(str(path), read_only=read_only, config=settings))
    if connection is not None:
        # It would be drawn on stdout of an interactive program. A locked connection of DuckDB 1 accepts PRAGMA but not
        # SET; one of DuckDB 2 accepts neither.
        with suppress(duckdb.InvalidInputException):
            connection.execute("PRAGMA disable_progress_bar")
    return connection


def _retry(wait_seconds: float, attempt: Callable[[], T]) -> T | None:
    """Retry with growing pauses while another connection has the file open; None on timeout."""
    deadline = time.monotonic() + wait_seconds
    growing = wait_exponential(multiplier=0.1, max=MAX_PAUSE_SECONDS)
    try:
        return Retrying(
            retry=retry_if_exception(_is_locked),
            stop=stop_after_delay(wait_seconds),
            # The last attempt is at the deadline, not a full pause after it.
            wait=lambda state: max(0.01, min(growing(state), deadline - time.monotonic())),
        )(attempt)
    except RetryError:
        return None


def _is_locked(error: BaseException) -> bool:
    # Not just "lock": errors about a corrupt file contain "block".
    return (
        (isinstance(error, duckdb.IOException) and "Could not set lock" in str(error))
        or (
            # The same file is open in this process for reading while opened for writing, or vice versa.
            isinstance(error, duckdb.ConnectionException) and "different configuration" in str(error)
        )
        # A BinderException in DuckDB 1, a class of its own in 2.
        or (isinstance(error, duckdb.Error) and "Unique file handle conflict" in str(error))
    )
