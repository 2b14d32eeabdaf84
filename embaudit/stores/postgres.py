"""Tables of a PostgreSQL database: pgvector's types, arrays, bytes or text; read in one snapshot, read-only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from embaudit.stores.nested import column_of
from embaudit.stores.place import ReadOptions, SqlTable, StorePlace, is_query, quoted, source_of
from embaudit.stores.postgres_search import search_of_table
from embaudit.stores.store import (
    BATCH_ROWS,
    LOOKED_AT,
    Metric,
    StoreColumn,
    StoreKind,
    StoreTable,
    Values,
    explained,
    needed,
)
from embaudit.words.masking import keep_credentials

SCHEMES = ("postgresql", "postgres")
NUMBERS = {"vector": "float32", "halfvec": "float16", "sparsevec": "float32"}
VECTORS = re.compile(r"(vector|halfvec|sparsevec|bit|real|double precision|bytea)(\(\d+\))?(\[\])?")
PLAIN_NUMBERS = ("real", "double precision")
TEXTS = ("text", "character", "name")
TABLES = """
SELECT n.nspname, c.relname, array_agg(format_type(a.atttypid, a.atttypmod))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND a.attnum > 0 AND NOT a.attisdropped
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
GROUP BY 1, 2 ORDER BY 1, 2
"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE indexdef LIKE %s"
OPERATORS: Mapping[str, Metric] = {"cosine": "cosine", "ip": "dot", "l2": "l2"}
OPERATOR = re.compile(r"(?:vector|halfvec|sparsevec)_(cosine|ip|l2)_ops")
# Every pass sees the same rows in the same order, and nothing can be written.
SNAPSHOT = """
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL synchronize_seqscans = off; SET LOCAL max_parallel_workers_per_gather = 0
"""
CHECK = "Check the address, and that you may read the table; PGPASSWORD keeps a password out of sight."


def open_postgres(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A table or view of a database, or what a query gives."""
    keep_credentials(place.named)
    psycopg = needed("psycopg", "postgres", place.shown)
    guarded = partial(explained, place.shown, CHECK, psycopg.Error)
    with guarded():
        connection = psycopg.connect(place.named)
        connection.execute(SNAPSHOT)
        _know_pgvector(connection, place)
        tables = [_sql_table(*row) for row in connection.execute(TABLES)]
        if not any(table.may_hold_vectors for table in tables):
            # Lists may be written as text.
            tables = [SqlTable(one.name, one.quoted, one.has_texts, one.has_texts) for one in tables]
        source, called = source_of(tables, asked.part, place.shown)
        columns = _columns(connection, source)
        count = connection.execute(f"SELECT count(*) FROM {source}").fetchone()[0]
        metric = _metric(connection, called)

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        chosen = _chosen(names, {name: column.type for name, column in columns.items()})
        with guarded(), connection.cursor("embaudit", binary=True) as cursor:
            cursor.execute(f"SELECT {chosen} FROM {source}")
            while rows := cursor.fetchmany(BATCH_ROWS):
                yield {name: _plain(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}

    shown = f"{place.shown}, {called}"
    types = {name: column.type for name, column in columns.items()}
    search = None if is_query(asked.part) else search_of_table(connection, source, types, guarded)
    return StoreTable(shown, columns, read, rows=count, metric=metric, is_pinned=True, search=search)


def _know_pgvector(connection: Any, place: StorePlace) -> None:
    """Have pgvector's types come as arrays, where the database has them."""
    if connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        needed("pgvector.psycopg", "postgres", place.shown).register_vector(connection)


def _sql_table(schema: str, name: str, types: Sequence[str]) -> SqlTable:
    return SqlTable(
        name if schema == "public" else f"{schema}.{name}",
        quoted(schema, name),
        any((found := VECTORS.fullmatch(one)) and (found[1] not in PLAIN_NUMBERS or found[3]) for one in types),
        any(one.startswith(TEXTS) for one in types),
    )


def _columns(connection: Any, source: str) -> dict[str, StoreColumn]:
    """The columns of a table: what they hold by their types, where these say so, else by their first values."""
    described = connection.execute(f"SELECT * FROM {source} LIMIT 0").description
    kinds = {one.name: re.sub(r"\(.*", "", one.type_display) for one in described}
    with connection.cursor("embaudit_first", binary=True) as cursor:
        cursor.execute(f"SELECT {_chosen(kinds, kinds)} FROM {source} LIMIT {LOOKED_AT}")
        rows = cursor.fetchall()
    found = {}
    for place, (name, kind) in enumerate(kinds.items()):
        column = column_of([one for one in _plain([row[place] for row in rows]) if one is not None])
        found[name] = replace(column, type=kind, numbers=NUMBERS.get(kind, ""))
    return found


def _chosen(names: Iterable[str], kinds: Mapping[str, str]) -> str:
    # Bits as text: their binary form has its length before them.
    return ", ".join(quoted(name) + ("::text" if kinds[name] in ("bit", "varbit") else "") for name in names)


def _plain(values: Sequence[Any]) -> list[Any]:
    """pgvector's objects as arrays in this machine's order of bytes."""
    first = next((one for one in values if one is not None), None)
    if not hasattr(first, "to_numpy"):
        return list(values)
    return [None if one is None else (own := one.to_numpy()).astype(own.dtype.newbyteorder("=")) for one in values]


def _metric(connection: Any, called: str) -> Metric:
    """What the table's indexes of vectors rank by; empty if there are none, or several."""
    name = called.removeprefix("table ").rpartition(".")[2]
    made = [row[0] for row in connection.execute(INDEXES, [f"% ON %{name}%USING%"])]
    found = {OPERATORS[word] for one in made for word in OPERATOR.findall(one)}
    return found.pop() if len(found) == 1 else ""


KINDS = (
    StoreKind(
        name="PostgreSQL",
        recognises=lambda place: place.scheme in SCHEMES,
        open=open_postgres,
        looks="postgresql://… (pgvector)",
        tried="real servers: PostgreSQL with pgvector 0.8, and without",
        extra="postgres",
    ),
)
