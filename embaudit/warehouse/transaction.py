"""One transaction as a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

from embaudit.warehouse.lake import is_lake, touch


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All of it or nothing. In a DuckLake no two of them succeed side by side."""
    connection.execute("BEGIN TRANSACTION")
    try:
        if is_lake(connection):
            touch(connection)
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After Ctrl-C duckdb 1.5.5 still works on the statement, and would finish it before rolling back.
        connection.interrupt()
        # A commit that failed (full disk) has rolled back already; the first error is the one to report.
        with suppress(duckdb.Error, RuntimeError):
            connection.execute("ROLLBACK")
        raise
