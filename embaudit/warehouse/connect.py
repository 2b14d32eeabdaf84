"""Opening the warehouse: briefly for writing, read-only for everybody else, with waiting where it is locked."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from embaudit.errors import StorageError, WarehouseError
from embaudit.warehouse.migrate import migrate, require_known_version

if TYPE_CHECKING:
    import duckdb

# Enough for twelve million rows in one transaction; what does not fit spills beside the warehouse.
WRITER_MEMORY = "1GB"
WRITER = {"memory_limit": WRITER_MEMORY, "preserve_insertion_order": "false"}
READER = {"enable_external_access": "false"}
LONGEST_PAUSE_SECONDS = 5.0
# DuckDB has no error classes for these; the words were read off duckdb 1.5.5.
DISK_SIGNS = ("No space left", "Disk quota", "ould not write", "File too large", "max_temp_directory_size")
PERMISSION_SIGNS = ("Permission denied", "Read-only file system", "Operation not permitted")


@contextmanager
def open_writer(path: Path, wait_seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The one writing connection, migrated to this program's schema; closed again at once.

    Raises:
        WarehouseError: if another process keeps it locked, or a newer embaudit wrote it.
        StorageError: if the disk is full or not writable.
    """
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        connection = _connect(path, wait_seconds, read_only=False, config=WRITER)
        if connection is None:
            raise WarehouseError(
                f"Another process has the warehouse {path} open, and kept it for {wait_seconds:.0f} seconds.",
                kept="All computed results are staged; nothing is lost.",
                next_step="Close that program (a DuckDB shell or dashboard?) and run the same command again: "
                "it only has to publish.",
            )
        try:
            with interruptible(connection):
                migrate(connection, path)
                yield connection
        finally:
            connection.close()


@contextmanager
def open_reader(path: Path, wait_seconds: float = 5.0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection that can reach no other file and change no setting.

    Raises:
        WarehouseError: if there is no warehouse, or it is locked or newer.
    """
    if not path.is_file():
        raise WarehouseError(
            f"{path} is a folder, not a warehouse." if path.is_dir() else f"There is no warehouse at {path}.",
            next_step="Make one (embaudit audit packaged:all-MiniLM-L6-v2), or name it: --warehouse PATH",
        )
    with _explained(path):
        connection = _connect(path, wait_seconds, read_only=True, config=READER)
    if connection is None:
        raise WarehouseError(
            f"Another process has the warehouse {path} open for writing.",
            next_step="An audit publishes within a minute: try again then, or close that program.",
        )
    try:
        with _explained(path):
            if require_known_version(connection, path) == 0:
                raise WarehouseError(
                    f"{path} is a DuckDB database, but no embaudit warehouse.",
                    next_step="Name the warehouse: --warehouse PATH",
                )
            connection.execute("SET lock_configuration = true")
        with interruptible(connection):
            yield connection
    finally:
        connection.close()


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


def explain(error: Exception, path: Path) -> WarehouseError | StorageError:
    """An error of DuckDB or the file system in this project's words."""
    message = str(error).split("\n", 1)[0]
    is_full = any(sign in message for sign in DISK_SIGNS)
    if is_full or any(sign in message for sign in PERMISSION_SIGNS):
        return StorageError(
            f"Cannot write the warehouse {path}: {message}",
            kept="The published tables are as they were, and all staged results are kept.",
            next_step=("Make room" if is_full else "Fix the permission")
            + " and run the same command again: it only has to publish.",
        )
    if "not a valid DuckDB database" in message or "Is a directory" in message:
        return WarehouseError(
            f"{path} is no DuckDB database.",
            kept="It was not touched, and staged results are kept.",
            next_step="Name another file: --warehouse PATH",
        )
    return WarehouseError(
        f"DuckDB cannot use {path}: {message}",
        kept="Staged results are kept.",
        next_step="embaudit doctor says more.",
    )


def _create(path: Path) -> None:
    """A new warehouse appears under its name when it is whole: a kill or a full disk while DuckDB lays it would
    leave a file that is no database, and that no later run could open."""
    import duckdb

    # DuckDB puts its log and its spill files beside a database: a folder of its own takes them all.
    folder = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    folder.mkdir()
    try:
        with duckdb.connect(str(folder / path.name), config=WRITER) as connection:
            migrate(connection, path)
            connection.execute("CHECKPOINT")
        try:
            path.hardlink_to(folder / path.name)
        except FileExistsError:
            pass  # Another process was quicker: its warehouse stays.
        except OSError:
            # A file system without hard links.
            if not path.exists():
                (folder / path.name).rename(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError) as error:
        raise explain(error, path) from error


def _connect(
    path: Path, wait_seconds: float, *, read_only: bool, config: Mapping[str, str]
) -> duckdb.DuckDBPyConnection | None:
    """Connect, trying again with growing pauses while another connection has the file; None if it keeps it."""
    import duckdb
    from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_exponential

    deadline = time.monotonic() + wait_seconds
    growing = wait_exponential(multiplier=0.1, max=LONGEST_PAUSE_SECONDS)
    try:
        return Retrying(
            retry=retry_if_exception(_is_locked),
            stop=stop_after_delay(wait_seconds),
            # The last try comes at the deadline, not a whole pause after it.
            wait=lambda state: max(0.01, min(growing(state), deadline - time.monotonic())),
        )(duckdb.connect, str(path), read_only=read_only, config=dict(config))
    except RetryError:
        return None


def _is_locked(error: BaseException) -> bool:
    import duckdb

    # Not merely "lock": a corrupt file is reported by its "block".
    return (isinstance(error, duckdb.IOException) and "Could not set lock" in str(error)) or (
        # The same file in this process: a reader while it is written, or the other way round.
        isinstance(error, duckdb.ConnectionException) and "different configuration" in str(error)
    )
