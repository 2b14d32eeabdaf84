"""Writes rows into tables within one transaction, and what tables and columns mean as comments on them.

Rows are replaced by the primary keys that row classes and migrations declare. A DuckDB file does not reuse the space of
deleted rows in a table with a key, so rows are replaced in place and the rest is deleted; a DuckLake has no keys,
always writes new files, and reclaims space in maintenance.

What a table or column means is said once: by the row classes of published tables, and by the first comment of a view's
file. ``meanings.toml`` has the rest: tables that migrations make, and columns that a view computes. A view's other
columns mean what they mean where it reads them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from embaudit.declared.table import DeclaredTable
from embaudit.steps.staging.files import scheme_of, store_of
from embaudit.warehouse.lake import explain, is_conflict, is_lake, is_unreachable, literal, touch
from embaudit.warehouse.tables import TABLES
from embaudit.words.errors import StorageError, WarehouseError
from embaudit.words.masking import masked_output, masker

if TYPE_CHECKING:
    import duckdb

# `PRIMARY KEY (a, b)` as the last element of a table, after the comma and comments of the previous column.
TABLE_KEY = re.compile(r",(?P<between>(?:\s|--[^\n]*\n)*)PRIMARY KEY\s*\((?P<columns>[^)]*)\)")
COLUMN_KEY = re.compile(r"\bPRIMARY KEY\b")
TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(?P<name>\w+) \((?P<body>.*?)\n\)", re.DOTALL)


def without_keys(sql: str) -> str:
    """The same statements for a database without keys: key columns are just NOT NULL."""
    return COLUMN_KEY.sub("NOT NULL", TABLE_KEY.sub(lambda found: found["between"], sql))


@cache
def primary_keys() -> dict[str, tuple[str, ...]]:
    """Every table's key: declared by its row class, or parsed from the migrations."""
    folder = files("embaudit_sql").joinpath("migrations")
    others = keys_of(file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".sql"))
    return others | {table.name: table.primary_key for table in TABLES.values() if not table.is_bulk}


def keys_of(statements: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The keys declared by CREATE TABLE statements, by table."""
    found: dict[str, tuple[str, ...]] = {}
    for sql in statements:
        for table in TABLE.finditer(sql):
            if several := TABLE_KEY.search(table["body"]):
                found[table["name"]] = tuple(column.strip() for column in several["columns"].split(","))
            elif one := re.search(r"^\s*(\w+)\s[^\n]*\bPRIMARY KEY\b", table["body"], re.MULTILINE):
                found[table["name"]] = (one[1],)
    return found


# Folders named name=value are not partitions: the file has all columns.
STAGED = "read_parquet(?, hive_partitioning = false)"


@dataclass(frozen=True)
class StagedTable:
    """The staged files of one table, shards in order."""

    table: str
    paths: tuple[str, ...]


def write_table(connection: duckdb.DuckDBPyConnection, audit_id: str, staged: StagedTable) -> int:
    """Load one table's staged files in the caller's transaction; returns the number of rows.

    Table names come from ``TABLES``, never from a user.

    Raises:
        WarehouseError: if the table does not accept the rows.
    """
    paths = [_literal(path) for path in staged.paths]
    let_duckdb_read(connection, staged.paths)
    try:
        if is_lake(connection):
            _write_keyless(connection, TABLES[staged.table], audit_id, paths)
        else:
            _write_keyed(connection, TABLES[staged.table], audit_id, paths)
        row = connection.execute(
            "SELECT sum(num_rows) FROM (SELECT DISTINCT file_name, num_rows FROM parquet_file_metadata(?))",
            [paths],
        ).fetchone()
    except duckdb.Error as error:
        translated = explain(error, Path(staged.paths[0]))
        if isinstance(translated, StorageError) or is_conflict(error) or is_unreachable(error):
            raise
        raise WarehouseError(
            f"The table {staged.table} does not accept its staged rows: {str(error).splitlines()[0]} "
            f"(from {', '.join(staged.paths[:3])}).",
            kept="The published tables are unchanged, and the staged files are kept.",
            next_step="Delete those files and run the same command again: only they are recomputed.",
        ) from error
    return int(row[0] or 0) if row else 0


def replace_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows with the same columns; rows with the same primary key are replaced."""
    if not rows:
        return
    columns = list(rows[0])
    keys = primary_keys()[table]
    mask = masker()
    values = [[sql_value(row[column], mask) for column in columns] for row in rows]
    # Keep the last row of each key; within one statement DuckDB would keep the first, and a lake all.
    last = {tuple(row[columns.index(key)] for key in keys): row for row in values}
    kinds = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall()}
    parameters = [list(column) for column in zip(*last.values(), strict=True)]
    # Give the type explicitly: an all-null column would have none.
    given = f"SELECT {', '.join(f'unnest(?::{kinds[column]}[]) AS {column}' for column in columns)}"
    verb = "INSERT OR REPLACE INTO"
    if is_lake(connection):
        verb = "INSERT INTO"
        same = " AND ".join(f"given.{key} = {table}.{key}" for key in keys)
        connection.execute(f"DELETE FROM {table} WHERE EXISTS (FROM ({given}) AS given WHERE {same})", parameters)
    connection.execute(f"{verb} {table} BY NAME {given}", parameters)


def sql_value(value: Any, mask: Callable[[str], str] = masked_output) -> Any:
    """A value in the form accepted by a column: structures as JSON; text without secrets."""
    if isinstance(value, (dict, list)):
        value = json.dumps(_without_nan(value), sort_keys=True, default=str)
    return mask(value) if isinstance(value, str) else value


def _write_keyed(connection: duckdb.DuckDBPyConnection, table: DeclaredTable, audit_id: str, paths: list[str]) -> None:
    statement = f"SELECT * FROM {STAGED} AS staged"
    parameters: list[Any] = [paths]
    if table.scope == "audit":
        statement, parameters = f"SELECT ? AS audit_id, * FROM {STAGED} AS staged", [audit_id, paths]
    verb = "INSERT OR REPLACE INTO"
    if table.is_bulk:
        verb = "INSERT INTO"
        connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ?", [audit_id])
    elif table.is_kept:
        # Content never changes under its id, so existing rows are not written again. Two audits may bring different
        # rows of the same corpus.
        verb = "INSERT OR IGNORE INTO"
        same = " AND ".join(f"kept.{key} = staged.{key}" for key in table.keys)
        kept = f"SELECT 1 FROM {table.name} AS kept WHERE {same}"
        statement += f" WHERE NOT EXISTS ({kept})"
    if not table.is_bulk:
        # Within one statement DuckDB keeps the row that some thread inserts first.
        statement += f" {_first_of_each(table.keys)}"
    connection.execute(f"{verb} {table.name} BY NAME {statement}", parameters)
    if table.scope == "audit" and not table.is_bulk:
        # Replace in place, then delete the rest: DuckDB never reuses the space of deleted rows in a table with a key,
        # so deleting first would let the file grow with every rerun.
        same = " AND ".join(f"staged.{key} = {table.name}.{key}" for key in table.keys)
        left_over = f"NOT EXISTS (SELECT 1 FROM {STAGED} AS staged WHERE {same})"
        connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ? AND {left_over}", [audit_id, paths])


def _write_keyless(
    connection: duckdb.DuckDBPyConnection, table: DeclaredTable, audit_id: str, paths: list[str]
) -> None:
    first = _first_of_each(table.keys)
    if table.scope == "audit":
        connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ?", [audit_id])
        once = "" if table.is_bulk else first
        connection.execute(
            f"INSERT INTO {table.name} BY NAME SELECT ? AS audit_id, * FROM {STAGED} {once}", [audit_id, paths]
        )
        return
    same = " AND ".join(f"there.{key} = staged.{key}" for key in table.keys)
    if not table.is_kept:
        # Write only changed rows: every replaced row is another deletion for readers to skip.
        described = connection.execute(f"DESCRIBE SELECT * FROM {STAGED}", [paths]).fetchall()
        columns = ", ".join(f'"{name}"' for name, *_ in described)
        changed = f"(SELECT {columns} FROM {STAGED} EXCEPT SELECT {columns} FROM {table.name})"
        connection.execute(
            f"DELETE FROM {table.name} AS there WHERE EXISTS (FROM {changed} AS staged WHERE {same})", [paths]
        )
    connection.execute(
        f"INSERT INTO {table.name} BY NAME SELECT * FROM {STAGED} AS staged "
        f"WHERE NOT EXISTS (FROM {table.name} AS there WHERE {same}) {first}",
        [paths],
    )


def _first_of_each(keys: Sequence[str]) -> str:
    """Keep the first row of each key in file order, independent of threads."""
    return f"QUALIFY row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY file_index, file_row_number) = 1"


def _without_nan(value: Any) -> Any:
    """Replace NaN, which JSON lacks: pandas gives the null key of a broken row as NaN."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _literal(path: str) -> str:
    """A path escaped for DuckDB's globbing."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def let_duckdb_read(connection: duckdb.DuckDBPyConnection, places: Sequence[str]) -> None:
    """Make a connection read these stores through fsspec instead of downloading extensions.

    Raises:
        UsageError: if a store's package is missing.
    """
    for place in places:
        scheme = scheme_of(place)
        if not scheme or connection.filesystem_is_registered(scheme):
            continue
        store, _ = store_of(place)
        names = [store.protocol] if isinstance(store.protocol, str) else list(store.protocol)
        if not any(connection.filesystem_is_registered(name) for name in names):
            connection.register_filesystem(store)


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


READS = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")


@cache
def written() -> str:
    """The file with what no declaration says."""
    return files("embaudit_sql").joinpath("meanings.toml").read_text(encoding="utf-8")


def meaning_of_view(sql: str) -> str:
    """The comment before its statement."""
    lines = takewhile(lambda line: line.startswith("--"), sql.splitlines())
    return " ".join(line.removeprefix("--").strip() for line in lines)


def meanings_of_tables() -> dict[str, str]:
    """By table, declared or made by a migration."""
    return {name: table.meaning for name, table in TABLES.items()} | tomllib.loads(written())["tables"]


def meanings_of_columns(views: Mapping[str, str], stored: Mapping[str, Collection[str]]) -> dict[str, dict[str, str]]:
    """By table or view and column, of those that a warehouse has.

    Args:
        views: their statements by name, each after those that it reads.
        stored: the columns of every table and view.
    """
    said = tomllib.loads(written())["columns"]
    found: dict[str, dict[str, str]] = {}
    for name in meanings_of_tables():
        declared = {column.name: column.comment for column in TABLES[name].columns.values()} if name in TABLES else {}
        # It is the same id in every table.
        means = {"audit_id": said["audit"]["audit_id"], **declared, **said.get(name, {})}
        found[name] = {column: means[column] for column in stored.get(name, ()) if column in means}
    for name, sql in views.items():
        means = said.get(name, {})
        for other in READS.findall(sql):
            means = found.get(other, {}) | means
        found[name] = {column: means[column] for column in stored.get(name, ()) if column in means}
    return found


# The table whose comment ends with a hash of what was written.
RECORD = "schema_migration"
COLUMNS = "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = current_database()"


def describe(connection: duckdb.DuckDBPyConnection, views: dict[str, str], *, even_if_there: bool) -> None:
    """Comment on every table, and on every column of tables and of a file's views, unless the comments are up to date.

    Writing them takes half a second, and a lake keeps every change in its history.

    Args:
        views: their statements by name.
        even_if_there: write them anyway, because tables or views have changed.
    """
    mark = _mark(written(), *views.values())
    found = connection.execute(
        "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND table_name = ?", [RECORD]
    ).fetchone()
    if not even_if_there and found and str(found[0]).endswith(mark):
        return
    stored: dict[str, list[str]] = {}
    for name, column in connection.execute(COLUMNS).fetchall():
        stored.setdefault(name, []).append(column)
    # DuckLake takes comments on views, but not on their columns.
    silent = set(views) if is_lake(connection) else set()
    tables = meanings_of_tables()
    tables[RECORD] += f" {mark}"
    statements = [f"COMMENT ON TABLE {name} IS {literal(text)}" for name, text in tables.items() if name in stored]
    statements += [
        f'COMMENT ON COLUMN {name}."{column}" IS {literal(text)}'
        for name, meanings in meanings_of_columns(views, stored).items()
        if name not in silent
        for column, text in meanings.items()
    ]
    with transaction(connection):
        connection.execute(";\n".join(statements))


def marked(meaning: str, made_from: str) -> str:
    """A comment by which it can be told whether what it is about is up to date."""
    return f"{meaning} (embaudit {hashlib.sha256(made_from.encode()).hexdigest()[:16]})".strip()


@cache
def _mark(*parts: str) -> str:
    """What the comments of all that is declared, and of these texts, are known by."""
    return marked("", "\n".join([*_declared(), *parts]))


def _declared() -> list[str]:
    columns = (column for table in TABLES.values() for column in table.columns.values())
    return [*(table.meaning for table in TABLES.values()), *(f"{column.name} {column.comment}" for column in columns)]
