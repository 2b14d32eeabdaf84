"""Tables of a SQLite file: vectors in blobs or JSON, sqlite-vec's virtual tables, and llm's embeddings.db."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

from embaudit.stores.columns import IDS, is_vector
from embaudit.stores.copies import CHECK, connected, copied
from embaudit.stores.nested import batched, column_of, is_prose
from embaudit.stores.place import ReadOptions, SqlTable, StorePlace, is_query, quoted, source_of
from embaudit.stores.store import BATCH_ROWS, LOOKED_AT, Metric, StoreColumn, StoreKind, StoreTable, Values, needed
from embaudit.words.errors import EmptyStore, UsageError

MAGIC = b"SQLite format 3\0"
VEC0 = re.compile(r"using\s+vec0\b", re.IGNORECASE)
VEC0_COLUMN = re.compile(
    r"[\"']?(\w+)[\"']?\s+(float|int8|bit)\[\d+\](?:\s+distance_metric\s*=\s*(\w+))?", re.IGNORECASE
)
NUMBERS = {"float": "float32", "int8": "int8", "bit": "bits"}
METRICS: Mapping[str, Metric] = {"": "l2", "l2": "l2", "cosine": "cosine"}
ROWID = "rowid"


def open_sqlite(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A table of a SQLite file; read from the file as it is, or from a copy if another program has it open."""
    file = copied(place.path, ("-wal", "-journal"))
    with _connected(place, file) as connection:
        made = {
            name: sql or ""
            for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')")
        }
        tables = [_table(connection, name) for name in made if not _is_inside(name, made)]
        is_filled = any(connection.execute(f"SELECT 1 FROM {one.quoted} LIMIT 1").fetchone() for one in tables)
        if asked.part is None and tables and not is_filled:
            raise EmptyStore(f"{place.shown} has no rows.", next_step="Put some into it, or name another one.")
        source, called = source_of(tables, asked.part, place.shown)
        declared = made.get(called.removeprefix("table "), "")
        found = [one for one in tables if one.quoted == source]
        joined = _with_texts_of_another(connection, found[0], tables) if found else None
        if joined is not None:
            source, note = joined
        has_ids = (
            not is_query(asked.part)
            and joined is None
            and ROWID in _names(connection, f"SELECT rowid AS rowid, * FROM {source}")
        )
        what = f"rowid AS {ROWID}, *" if has_ids else "*"
        names = _names(connection, f"SELECT {what} FROM {source}")
        rows = list(islice(connection.execute(f"SELECT {what} FROM {source}"), LOOKED_AT))
        count = connection.execute(f"SELECT count(*) FROM {source}").fetchone()[0]
    columns = {
        name: column_of([row[place] for row in rows if row[place] is not None]) for place, name in enumerate(names)
    }
    metric: Metric = ""
    if VEC0.search(declared):
        for name, kind, distance in VEC0_COLUMN.findall(declared):
            columns[name] = replace(columns[name], what="bytes", numbers=NUMBERS[kind.lower()])
            metric = METRICS.get(distance.lower(), "")

    def read(wanted: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        chosen = ", ".join(ROWID if has_ids and name == ROWID else quoted(name) for name in wanted)
        with _connected(place, file) as connection:
            for part in batched(connection.execute(f"SELECT {chosen} FROM {source}"), BATCH_ROWS):
                yield dict(zip(wanted, map(list, zip(*part, strict=True)), strict=True))

    has_own = any(name.lower() in IDS for name in columns if name != ROWID)
    return StoreTable(
        f"{place.shown}, {called}",
        columns,
        read,
        rows=count,
        id="" if has_own or not has_ids else ROWID,
        metric=metric,
        notes=() if joined is None else (note,),
    )


def _with_texts_of_another(
    connection: sqlite3.Connection, own: SqlTable, tables: Sequence[SqlTable]
) -> tuple[str, str] | None:
    """The vectors' table with the texts of another, whose rows it names, and a sentence that says so.

    None if it has texts itself, if no table's column has the values of one of its own, each once, or several tables do.
    Whole numbers are in any table's: they name a row only where the column is called as the other, or as its table.
    """
    columns = _columns(connection, f"SELECT * FROM {own.quoted}")
    found: list[tuple[str, str, str, str]] = []
    for other in () if _has_prose(columns) else tables:
        if other.name == own.name or other.may_hold_vectors:
            continue
        others = _columns(connection, f"SELECT * FROM {other.quoted}")
        for mine, theirs in product(columns, others):
            if (
                not _has_prose(others)
                or is_vector(columns[mine])
                or not _may_name(mine, columns[mine], theirs, other.name)
            ):
                continue
            left, right = f"own.{quoted(mine)}", f"other.{quoted(theirs)}"
            both = f"{own.quoted} AS own LEFT JOIN {other.quoted} AS other ON {left} = {right}"
            rows = connection.execute(f"SELECT count(*) FROM {own.quoted}").fetchone()[0]
            counted = connection.execute(
                f"SELECT count(*), count({right}), count(DISTINCT {left}) FROM {both}"
            ).fetchone()
            # Several vectors of one text are of its pieces, which are not here.
            if counted == (rows, rows, rows) and rows:
                added = ", ".join(f"other.{quoted(name)}" for name in others if name not in columns)
                found.append((f"(SELECT own.*, {added} FROM {both})", other.name, mine, theirs))
    if len({name for _, name, _, _ in found}) != 1:
        return None
    source, name, mine, theirs = found[0]
    by = f"{own.name}.{mine} = {name}.{theirs}"
    return source, f"Texts are those of table {name}, by {by}. If they are others: --from 'SELECT …'"


def _has_prose(columns: Mapping[str, StoreColumn]) -> bool:
    texts = [one for one in columns.values() if one.what == "text" and not is_vector(one)]
    return any(is_prose([str(value) for value in one.some]) for one in texts)


def _may_name(mine: str, column: StoreColumn, theirs: str, table: str) -> bool:
    """Whether a column may hold what another table calls its rows."""
    is_same = mine.lower() == theirs.lower() not in ("id", ROWID, "pk", "key")
    is_called = is_same or mine.lower() in (f"{table.lower()}_id", f"{table.lower()[:-1]}_id")
    is_key = theirs.lower() in IDS or theirs.lower().endswith("id")
    return is_key and bool(column.some) and (is_called or isinstance(column.some[0], str))


@contextmanager
def _connected(place: StorePlace, file: Path) -> Iterator[sqlite3.Connection]:
    """A connection for any text, and with sqlite-vec if the file needs it."""
    with connected(place, file, CHECK) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE sql LIKE '%using vec0%'").fetchone():
            vec = needed("sqlite_vec", "sqlite-vec", place.shown)
            if not hasattr(connection, "enable_load_extension"):
                raise UsageError(
                    f"{place.shown} has tables of sqlite-vec, an extension, and this Python's sqlite3 was built "
                    "without extensions.",
                    next_step="Use another Python (conda's, Debian's or Homebrew's can), or export the table: "
                    "SELECT rowid, vec_to_json(embedding) FROM TABLE",
                )
            connection.enable_load_extension(True)
            vec.load(connection)
            connection.enable_load_extension(False)
        yield connection


def _table(connection: sqlite3.Connection, name: str) -> SqlTable:
    columns = _columns(connection, f"SELECT * FROM {quoted(name)}")
    return SqlTable(
        name,
        quoted(name),
        any(is_vector(column) for column in columns.values()),
        any(column.what == "text" and not is_vector(column) for column in columns.values()),
    )


def _columns(connection: sqlite3.Connection, query: str) -> dict[str, StoreColumn]:
    rows = list(islice(connection.execute(query), LOOKED_AT))
    names = _names(connection, query)
    return {name: column_of([row[place] for row in rows if row[place] is not None]) for place, name in enumerate(names)}


def _names(connection: sqlite3.Connection, query: str) -> list[str]:
    try:
        return [column[0] for column in connection.execute(f"{query} LIMIT 0").description]
    except sqlite3.OperationalError:
        # A view, or a table without row ids.
        return []


def _is_inside(name: str, made: Mapping[str, str]) -> bool:
    """Whether a table belongs to a virtual one, or to SQLite."""
    virtual = [other for other, sql in made.items() if sql.upper().startswith("CREATE VIRTUAL")]
    is_libsql = name.startswith("libsql_vector_") or ("libsql_vector_meta_shadow" in made and name.endswith("_shadow"))
    return (
        is_libsql
        or name.startswith("sqlite_")
        or any(name != other and name.startswith(f"{other}_") for other in virtual)
    )


KINDS = (
    StoreKind(
        name="SQLite",
        recognises=lambda place: place.head.startswith(MAGIC),
        open=open_sqlite,
        looks="a SQLite file (.db, .sqlite; sqlite-vec by `embaudit[sqlite-vec]`)",
        tried="the embedded engine",
    ),
)
