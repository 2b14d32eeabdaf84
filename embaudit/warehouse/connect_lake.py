"""Opening a DuckLake: writers one after the other, readers at any time."""

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

from embaudit.address import Lake
from embaudit.errors import WarehouseError
from embaudit.warehouse.explain import explained, interruptible
from embaudit.warehouse.lake import attach, held, is_unreachable, load_extensions, make_writer_row, try_lock
from embaudit.warehouse.migrate import migrate, require_known_version

MAX_PAUSE_SECONDS = 2.0
T = TypeVar("T")


@contextmanager
def open_lake_writer(lake: Lake, wait_seconds: float, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The one writing connection of the moment, migrated; other writers wait, readers do not."""
    deadline = time.monotonic() + wait_seconds
    with explained(lake):
        lake.data_path.mkdir(parents=True, exist_ok=True)
        connection = connect_memory(memory)
        try:
            load_extensions(connection)
            # Before the lake is attached: of two that find no lake, one makes it.
            holder = _until(deadline, lambda: try_lock(connection, lake))
            if holder is None:
                raise WarehouseError(
                    f"Other writers kept the queue of the warehouse {lake} for {wait_seconds:.0f} seconds.",
                    kept="All computed results are staged; nothing is lost.",
                    next_step="Run the same command again: it only has to publish. A longer wait: "
                    "EMBAUDIT_LOCK_WAIT_SECONDS.",
                )
            with held(holder), interruptible(connection):
                attach(connection, lake, read_only=False)
                require_known_version(connection, lake)
                make_writer_row(connection)
                migrate(connection, lake)
                yield connection
        finally:
            connection.close()


@contextmanager
def open_lake_reader(lake: Lake, wait_seconds: float, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection that reaches PostgreSQL's catalog, the folder of the data files, and no other file."""
    with open_lake_source(lake, wait_seconds, memory) as connection:
        with explained(lake):
            folder = str(lake.data_path).replace("'", "''")
            connection.execute(f"SET allowed_directories = ['{folder}/']")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        yield connection


@contextmanager
def open_lake_source(lake: Lake, wait_seconds: float, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same without the locks on files, for this program's own statements: exports."""
    deadline = time.monotonic() + wait_seconds
    connection = connect_memory(memory)

    def attached() -> bool:
        attach(connection, lake, read_only=True)
        return True

    try:
        with explained(lake):
            load_extensions(connection)
            _until(deadline, attached)
            if require_known_version(connection, lake) == 0:
                raise WarehouseError(
                    f"{lake} is a DuckLake, but no embaudit warehouse.",
                    next_step="Name the warehouse: --warehouse ADDRESS",
                )
        with interruptible(connection):
            yield connection
    finally:
        connection.close()


def connect_memory(memory: str) -> duckdb.DuckDBPyConnection:
    """A connection without a database file, which will attach what it works on."""
    config = {
        "memory_limit": memory,
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # A database without a file would spill into the folder that the command happens to run in.
        "temp_directory": str(Path(tempfile.gettempdir()) / f"embaudit-spill-{os.getpid()}"),
    }
    connection = duckdb.connect(":memory:", config=config)
    # It would be drawn on stdout, among rows that a program reads.
    connection.execute("SET enable_progress_bar = false")
    return connection


def _until(deadline: float, attempt: Callable[[], T | None]) -> T | None:
    """Try until it gives something, with growing pauses; a server that does not answer is tried again too.

    None at the deadline; what the last attempt raised, if it raised.
    """
    # Random pauses: several machines that publish after the same nightly run must not keep step.
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
