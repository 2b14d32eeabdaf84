"""Opening the warehouse: briefly for writing, read-only for everybody else, with waiting where it is locked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from embaudit.errors import StorageError, WarehouseError
from embaudit.warehouse.migrate import migrate, require_known_version

if TYPE_CHECKING:
    import duckdb

# Enough for twelve million rows in one transaction; what does not fit spills beside the warehouse.
WRITER_MEMORY = "1GB"


@contextmanager
def open_writer(path: Path, wait_seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The one writing connection, migrated to this program's schema; closed again at once.

    Raises:
        WarehouseError: if another process keeps it locked, or a newer embaudit wrote it.
        StorageError: if the disk is full or not writable.
    """
    import duckdb

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = _wait_for_lock(
            lambda: duckdb.connect(
                str(path), config={"memory_limit": WRITER_MEMORY, "preserve_insertion_order": "false"}
            ),
            path,
            wait_seconds,
        )
        try:
            migrate(connection, path)
            yield connection
        finally:
            connection.close()
    except (duckdb.Error, OSError) as error:
        raise explain(error, path) from error


@contextmanager
def open_reader(path: Path, wait_seconds: float = 5.0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection that can reach no other file and change no setting.

    Raises:
        WarehouseError: if there is no warehouse, or it is locked or newer.
    """
    import duckdb

    if not path.is_file():
        raise WarehouseError(
            f"There is no warehouse at {path}.",
            next_step="Make one (embaudit audit packaged:all-MiniLM-L6-v2), or name it: --warehouse PATH",
        )
    try:
        connection = _wait_for_lock(
            lambda: duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"}),
            path,
            wait_seconds,
        )
    except duckdb.Error as error:
        raise explain(error, path) from error
    try:
        require_known_version(connection, path)
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All of it or nothing."""
    import duckdb

    connection.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        try:
            connection.execute("ROLLBACK")
        except duckdb.Error:
            # A failed commit (full disk) has rolled back already; the first error is the one to report.
            pass
        raise
    connection.execute("COMMIT")


def _wait_for_lock(
    connect: Callable[[], duckdb.DuckDBPyConnection], path: Path, wait_seconds: float
) -> duckdb.DuckDBPyConnection:
    import duckdb
    from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_exponential_jitter

    def is_lock(error: BaseException) -> bool:
        return isinstance(error, duckdb.IOException) and "lock" in str(error).lower()

    try:
        return Retrying(
            retry=retry_if_exception(is_lock),
            stop=stop_after_delay(wait_seconds),
            wait=wait_exponential_jitter(initial=0.1, max=5.0),
        )(connect)
    except RetryError as error:
        raise WarehouseError(
            f"Another process has the warehouse {path} open, and kept it for {wait_seconds:.0f} seconds.",
            kept="All computed results are staged; nothing is lost.",
            next_step="Close that program (a DuckDB shell or dashboard?) and run the same command again: "
            "it only has to publish.",
        ) from error


def explain(error: Exception, path: Path) -> WarehouseError | StorageError:
    """An error of DuckDB or the file system in this project's words."""
    message = str(error).split("\n", 1)[0]
    if any(
        sign in message
        for sign in (
            "No space left",
            "Disk quota",
            "could not write",
            "Could not write",
            "Permission denied",
            "Read-only",
        )
    ):
        return StorageError(
            f"Cannot write the warehouse {path}: {message}",
            kept="The published tables are as they were, and all staged results are kept.",
            next_step="Make room or fix the permission, and run the same command again: it only has to publish.",
        )
    return WarehouseError(
        f"DuckDB cannot use {path}: {message}",
        kept="Staged results are kept.",
        next_step="embaudit doctor says more.",
    )
