"""A transaction as a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

from embaudit.warehouse.lake import is_lake, touch


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit all or nothing. In a DuckLake, concurrent transactions conflict."""
    connection.execute("BEGIN TRANSACTION")
    try:
        if is_lake(connection):
            touch(connection)
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After Ctrl-C duckdb 1.5.5 is still running the statement and would finish it before rolling back.
        connection.interrupt()
        # A failed commit (full disk) has already rolled back; report the first error.
        with suppress(duckdb.Error, RuntimeError):
            connection.execute("ROLLBACK")
        raise
