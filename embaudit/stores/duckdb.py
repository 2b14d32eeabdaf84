"""Tables of a DuckDB file: lists or arrays of numbers.

DuckDB's own search: the first rows by a distance; with its extension vss, by an index.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.stores.arrow import table_of_arrow
from embaudit.stores.place import ReadOptions, SqlTable, StorePlace, is_query, quoted, source_of
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import BATCH_ROWS, ONLY_READ, Metric, StoreKind, StoreTable
from embaudit.system.processors import threads_of_duckdb
from embaudit.words.errors import CorpusError, UsageError, one_line

if TYPE_CHECKING:
    import duckdb


EF, DEFAULT_EF, MOST_EF = "hnsw_ef_search", 64, 1 << 20
EXACT = {"exact": 1}
NUMBERS = re.compile(r"(FLOAT|DOUBLE)\[(\d*)\]")
FUNCTIONS: Mapping[Metric, str] = {"l2": "distance", "cosine": "cosine_distance", "dot": "negative_inner_product"}
# As vss calls them.
METRICS: Mapping[str, Metric] = {"l2sq": "l2", "cosine": "cosine", "ip": "dot"}
EXTENSION = "duckdb_extension_vss"
INDEXES = """
SELECT schema_name, table_name, index_name, expressions FROM duckdb_indexes() WHERE sql ILIKE '%USING HNSW%'
"""


def search_of_table(
    connected: Callable[[], duckdb.DuckDBPyConnection],
    source: str,
    rows: int,
    explained: Callable[[], AbstractContextManager[None]],
) -> OpenSearch:
    """The search of a table.

    Args:
        connected: makes a read-only connection.
        source: as a statement names it.
        explained: reports errors of the connection.
    """

    def open_search(columns: SearchedColumns) -> StoreSearch:
        with explained():
            connection = connected()
            types = {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE {source}").fetchall()}
            index, metric, note = _index(connection, source, columns.vector)
        kind = types.get(columns.vector, "")
        if not NUMBERS.fullmatch(kind):
            raise UsageError(
                f"Column {columns.vector} is {kind or 'inside another one'}, of which DuckDB computes no distance.",
                next_step="Name a column of FLOAT[n], or cast it: ALTER TABLE … ALTER … TYPE FLOAT[n]",
            )
        of = "list" if kind.endswith("[]") else "array"
        distance = f"{of}_{FUNCTIONS[metric]}({quoted(columns.vector)}, ?::{kind})"
        id_ = _column(columns.id, types)
        in_force: dict[str, int] = {}

        def set_ef(settings: Settings) -> None:
            value = settings.get(EF, DEFAULT_EF)
            if index and in_force.get(EF, DEFAULT_EF) != value:
                connection.execute(f"RESET {EF}" if value == DEFAULT_EF else f"SET {EF} = {int(value)}")
                in_force[EF] = value

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            # An index is of the distance alone, not of a sum.
            score = f"{distance} + 0" if settings.get("exact") else distance
            kept = " AND ".join(f"{_column(name, types)} = ?" for name, _ in where)
            asked = f"SELECT {id_}, {score} AS score FROM {source}{kept and f' WHERE {kept}'} ORDER BY score LIMIT {k}"
            with explained():
                set_ef(settings)
                found = connection.execute(asked, [query.tolist(), *(value for _, value in where)]).fetchall()
            found = [row for row in found if row[1] is not None]
            return Hits([row[0] for row in found], np.array([row[1] for row in found], dtype=np.float64))

        return StoreSearch(
            index=f"HNSW {index}" if index else "no index: every row is looked at",
            find=find,
            metric=metric,
            is_exact=not index,
            dials=(SearchParameter(EF, DEFAULT_EF, max(min(rows, MOST_EF), DEFAULT_EF)),) if index else (),
            exact=EXACT if index else None,
            takes_where=True,
            notes=(note,) if note else (),
            anew="more links (M) and a higher ef_construction" if index else "",
        )

    return open_search


def _index(connection: duckdb.DuckDBPyConnection, source: str, vector: str) -> tuple[str, Metric, str]:
    """The index of a column, its metric, and what to know of it; no name if there is none that is used."""
    for schema, table, name, of in connection.execute(INDEXES).fetchall():
        if quoted(schema, table) != source or str(of).strip("[]'\"") != vector:
            continue
        if not _has_vss(connection):
            return (
                "",
                "l2",
                f"Its index {name} was not used: DuckDB's extension vss is not installed here "
                "(pip install 'embaudit[vss]'). Every row was looked at, by Euclidean distance.",
            )
        made = "SELECT metric FROM pragma_hnsw_index_info() WHERE (schema_name, table_name, index_name) = (?, ?, ?)"
        found = connection.execute(made, [schema, table, name]).fetchone()
        metric = METRICS[found[0]] if found else "l2"
        return name, metric, "A filter is applied to what its index gives: few rows may be left, or none."
    return "", "cosine", f"No index is on {vector}: it was asked by cosine (array_cosine_distance), of every row."


def _has_vss(connection: duckdb.DuckDBPyConnection) -> bool:
    """Loads vss, of its package, or where the user installed it; nothing is fetched."""
    import duckdb

    package = importlib.util.find_spec(EXTENSION)
    files = list(Path(package.origin).parent.rglob("vss.duckdb_extension")) if package and package.origin else []
    for name in (*(str(file).replace("'", "''") for file in files), "vss"):
        try:
            connection.execute(f"LOAD '{name}'")
        except duckdb.Error:
            continue
        return True
    return False


def _column(name: str, names: Sequence[str] | Mapping[str, str]) -> str:
    """A column, or a field of a struct by its path; names may hold dots themselves."""
    top = max((one for one in names if name == one or name.startswith(f"{one}.")), key=len, default=name)
    inner = name[len(top) + 1 :]
    return quoted(top, *(inner.split(".") if inner else ()))


SUFFIXES = (".duckdb", ".ddb")
# Its first bytes are a checksum; behind the magic are the number of its form, flags, and which DuckDB made it.
MAGIC = slice(8, 12), b"DUCK"
FORM, MADE_BY = slice(12, 20), slice(52, 84)
MEMORY = "1GB"
OTHER_FORM = re.compile(r"version number|storage version|newer version|older version", re.IGNORECASE)
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
        schema = connection.sql(f"SELECT * FROM {source} LIMIT 0").to_arrow_table().schema
        count = connection.execute(f"SELECT count(*) FROM {source}").fetchone()

    def batches(names: Sequence[str]) -> Iterator[Any]:
        columns = ", ".join(map(quoted, names))
        with _connected(place) as connection:
            yield from connection.sql(f"SELECT {columns} FROM {source}").to_arrow_reader(BATCH_ROWS)

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
        is_other = OTHER_FORM.search(str(error)) is not None
        happened = _other_form(place, duckdb.__version__) if is_other else f"cannot be read: {one_line(error)}"
        raise CorpusError(
            f"{place.shown} {happened}",
            kept=ONLY_READ,
            next_step=ELSEWHERE.format(place.shown) if is_other else _advice(str(error)),
        ) from error
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error


ELSEWHERE = (
    "Export its table with the DuckDB that made it: duckdb {} -c \"COPY TABLE TO 'rows.parquet'\", and name that file; "
    "or keep it in an older form: ATTACH 'older.duckdb' (STORAGE_VERSION 'v1.5.0')"
)


def _other_form(place: StorePlace, here: str) -> str:
    """Says of a file which DuckDB made it, where the one here does not read its form."""
    with place.path.open("rb") as file:
        start = file.read(MADE_BY.stop)
    by = start[MADE_BY].rstrip(b"\0").decode("ascii", "replace")
    form = int.from_bytes(start[FORM], "little")
    return f"was made by DuckDB{by and f' {by}'}, in form {form}, which the DuckDB {here} here does not read."


def _advice(said: str) -> str:
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
