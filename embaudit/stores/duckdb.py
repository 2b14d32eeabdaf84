"""Tables of a DuckDB file: lists or arrays of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from embaudit.stores.arrow_table import table_of_arrow
from embaudit.stores.duckdb_search import search_of_table
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.sql import SqlTable, is_query, quoted, source_of
from embaudit.stores.table import BATCH_ROWS, StoreKind, StoreTable
from embaudit.system.processors import threads_of_duckdb
from embaudit.words.errors import CorpusError, one_line

if TYPE_CHECKING:
    import duckdb

SUFFIXES = (".duckdb", ".ddb")
# Its first bytes are a checksum.
MAGIC = slice(8, 12), b"DUCK"
MEMORY = "1GB"
NEWER = re.compile(r"version number|storage version|newer version|older version", re.IGNORECASE)
VECTORS = re.compile(r"(FLOAT|DOUBLE|DECIMAL.*|U?TINYINT|U?SMALLINT|U?INTEGER|U?BIGINT|HUGEINT)\[\d*\]")
TABLES = """
SELECT schema_name, table_name, list(data_type) FROM duckdb_columns() WHERE NOT internal GROUP BY ALL ORDER BY ALL
"""


def is_duckdb(place: StorePlace) -> bool:
    where, magic = MAGIC
    return place.suffix in SUFFIXES or place.head[where] == magic


def open_duckdb(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A table or view of a DuckDB file; opened read-only."""
    with _connected(place) as connection:
        found = connection.execute(TABLES).fetchall()
        tables = [
            SqlTable(
                f"{schema}.{name}" if schema != "main" else name,
                quoted(schema, name),
                any(VECTORS.fullmatch(one) for one in types) or "BLOB" in types,
                "VARCHAR" in types,
            )
            for schema, name, types in found
        ]
        if not any(table.may_hold_vectors for table in tables):
            # Lists may be written as text.
            tables = [SqlTable(one.name, one.quoted, one.has_texts, one.has_texts) for one in tables]
        source, called = source_of(tables, asked.part, place.shown)
        schema = connection.execute(f"SELECT * FROM {source} LIMIT 0").to_arrow_table().schema
        count = connection.execute(f"SELECT count(*) FROM {source}").fetchone()

    def batches(names: Sequence[str]) -> Iterator[Any]:
        columns = ", ".join(map(quoted, names))
        with _connected(place) as connection:
            yield from connection.execute(f"SELECT {columns} FROM {source}").to_arrow_reader(BATCH_ROWS)

    rows = count[0] if count else None
    search = (
        None
        if is_query(asked.part)
        else search_of_table(partial(_connection, place), source, rows or 0, partial(_explained, place))
    )
    return table_of_arrow(f"{place.shown}, {called}", schema, batches, rows=rows, search=search)


@contextmanager
def _connected(place: StorePlace) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection, with errors that name the file."""
    with _explained(place), closing(_connection(place)) as connection:
        yield connection


def _connection(place: StorePlace) -> duckdb.DuckDBPyConnection:
    import duckdb

    if not place.path.is_file():
        raise CorpusError(f"There is no file {place.shown}.", next_step="Check the path.")
    connection = duckdb.connect(str(place.path), read_only=True, config={"memory_limit": MEMORY, **threads_of_duckdb()})
    # Rows have numbers, which must be the same every time.
    connection.execute("SET preserve_insertion_order = true")
    return connection


@contextmanager
def _explained(place: StorePlace) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise CorpusError(
            f"{place.shown} cannot be read: {one_line(error)}",
            kept="Nothing was changed: it is only read.",
            next_step=_advice(str(error), duckdb.__version__),
        ) from error
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error


def _advice(said: str, version: str) -> str:
    if NEWER.search(said):
        return (
            f"It was written by another DuckDB than the {version} here. Update it: pip install -U duckdb; "
            "or export the table where it was made: COPY TABLE TO 'rows.parquet'"
        )
    if "set lock" in said:
        return "End the program that has it open for writing, or export the table there: COPY TABLE TO 'rows.parquet'"
    return "Check the file: it may be damaged, or only in part here."


KINDS = (
    StoreKind(
        name="DuckDB",
        recognises=is_duckdb,
        open=open_duckdb,
        looks=".duckdb",
        tried="the embedded engine",
    ),
)
