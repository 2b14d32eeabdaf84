"""Tables of a DuckDB file, and of a PostgreSQL database through DuckDB's packaged extension (pgvector, real[]).

A table of PostgreSQL is copied to a temporary file first: it is read several times, and a database that is written to
meanwhile would give other rows each time.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from embaudit.comparisons.stored.rows import RowBatch, StoredIndex
from embaudit.errors import CorpusError, UsageError, one_line
from embaudit.masking import keep_credentials, without_credentials
from embaudit.suggest import hint
from embaudit.vector_files.columns import AskedColumns
from embaudit.vector_files.decode import BATCH_ROWS
from embaudit.vector_files.sources import indexed, open_parquet
from embaudit.warehouse.connect_lake import connect_memory
from embaudit.warehouse.explain import interruptible
from embaudit.warehouse.lake import extension_file, literal

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = "1GB"
FOUND = "found"
VECTOR_TYPES = re.compile(r"(FLOAT|DOUBLE|DECIMAL.*|U?TINYINT|U?SMALLINT|U?INTEGER|U?BIGINT|HUGEINT)\[\d*\]")


def open_duckdb(path: Path, asked: AskedColumns, table: str | None) -> StoredIndex:
    """A table of a DuckDB file; opened read-only."""
    if not path.is_file():
        raise CorpusError(f"There is no file {path}.", next_step="Check the path.")
    shown = str(path)

    def attach(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"ATTACH {literal(str(path))} AS {FOUND} (READ_ONLY)")

    with _connected(attach, shown) as connection:
        name = _table(connection, table, shown)
        schema = connection.execute(f"SELECT * FROM {name} LIMIT 0").to_arrow_table().schema
        count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()

    def of(names: Sequence[str]) -> Iterator[Any]:
        columns = ", ".join(map(_quoted, names))
        with _connected(attach, shown) as connection:
            yield from connection.execute(f"SELECT {columns} FROM {name}").to_arrow_reader(BATCH_ROWS)

    return indexed(f"{shown}, table {_plain(name)}", schema, asked, of, count[0] if count else None)


def open_postgres(address: str, asked: AskedColumns, table: str | None) -> StoredIndex:
    """A table of a PostgreSQL database: the columns that are read are copied to a temporary file."""
    keep_credentials(address)
    shown = without_credentials(address)

    def attach(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"LOAD {literal(str(extension_file('postgres_scanner')))}")
        connection.execute(f"ATTACH {literal(address)} AS {FOUND} (TYPE postgres, READ_ONLY)")

    folder = tempfile.TemporaryDirectory(prefix="embaudit-vectors-", ignore_cleanup_errors=True)
    with _connected(attach, shown) as connection:
        name = _table(connection, table, shown)
        copied = Path(folder.name) / "rows.parquet"
        # Large groups would be held in memory.
        connection.execute(
            f"COPY (SELECT * FROM {name}) TO {literal(str(copied))} (FORMAT parquet, ROW_GROUP_SIZE {BATCH_ROWS})"
        )
    found = open_parquet(copied, asked, shown=f"{shown}, table {_plain(name)}")

    def batches() -> Iterator[RowBatch]:
        # The copy is deleted with the last reader that knows its folder.
        if Path(folder.name).is_dir():
            yield from found.batches()

    return replace(found, batches=batches)


@contextmanager
def _connected(attach: Callable[[duckdb.DuckDBPyConnection], None], shown: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to what ``attach`` attaches, with errors that name it and no password."""
    connection = connect_memory(MEMORY)
    try:
        # Rows have numbers, which must be the same every time.
        connection.execute("SET preserve_insertion_order = true")
        attach(connection)
        with interruptible(connection):
            yield connection
    except duckdb.Error as error:
        raise CorpusError(
            f"{shown} cannot be read: {one_line(error)}",
            kept="Nothing was changed: it is only read.",
            next_step="Check the address, and that no other program has it open for writing.",
        ) from error
    finally:
        connection.close()


def _table(connection: duckdb.DuckDBPyConnection, asked: str | None, shown: str) -> str:
    """The quoted name of the table that is meant: the one that was named, or the only one that may hold vectors.

    Raises:
        UsageError: if there is none, or more than one.
    """
    columns = connection.execute(
        "SELECT schema_name, table_name, list(data_type) FROM duckdb_columns() WHERE database_name = ? AND NOT "
        "internal GROUP BY ALL ORDER BY ALL",
        [FOUND],
    ).fetchall()
    tables = {f"{schema}.{name}": (schema, name, types) for schema, name, types in columns}
    if asked is not None:
        named = [known for full, known in tables.items() if asked in (full, known[1])]
        if len(named) != 1:
            what = "no table" if not named else "several tables"
            raise UsageError(
                f"{shown} has {what} {asked!r}{hint(asked, tables)}.",
                next_step="Name it: --from TABLE" if tables else "Check that this is the database that is meant.",
            )
        return _full_name(*named[0][:2])
    fit = [full for full, (_, _, types) in tables.items() if any(VECTOR_TYPES.fullmatch(one) for one in types)]
    # pgvector's type is read as text; a table without lists of numbers may have it.
    fit = fit or [full for full, (_, _, types) in tables.items() if "VARCHAR" in types]
    if len(fit) != 1:
        names = ", ".join(fit or tables) or "it has no table"
        raise UsageError(
            f"{shown} has {f'{len(fit)} tables' if fit else 'no table'} that may hold vectors: {names}.",
            next_step="Name the one that is meant: --from TABLE"
            if fit
            else "A table of vectors has a column of lists.",
        )
    return _full_name(*tables[fit[0]][:2])


def _full_name(schema: str, table: str) -> str:
    return ".".join(map(_quoted, (FOUND, schema, table)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(name: str) -> str:
    return name.split(".", 1)[1].replace('"', "")
