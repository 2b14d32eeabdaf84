"""Opens a DuckLake: one writer at a time, readers at any time."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import duckdb
from tenacity import RetryError, Retrying, retry_if_exception, retry_if_result, wait_random_exponential

from embaudit.system.address import Lake
from embaudit.system.processors import threads_of_duckdb
from embaudit.warehouse.explain import interruptible, translate_errors
from embaudit.warehouse.lake import attach, is_unreachable, load_extensions, make_writer_row, release_at_end, try_lock
from embaudit.warehouse.migrate import migrate, require_known_version
from embaudit.words.errors import WarehouseError

MAX_PAUSE_SECONDS = 2.0
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
    growing = wait_random_exponential(multiplier=0.1, max=MAX_PAUSE_SECONDS)
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
