"""Writes what tables and columns mean as comments into the warehouse (see ``duckdb_columns()``).

What the tables, views and columns of a warehouse mean: each is said once.

Row classes say it of published tables, and the first comment of its file of a view. ``meanings.toml`` has the rest:
tables that migrations make, and columns that a view computes. A view's other columns mean what they mean where it reads
them.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import TYPE_CHECKING

from embaudit.warehouse.lake import is_lake, literal
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import transaction

if TYPE_CHECKING:
    import duckdb


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
    mark = marked("", "\n".join([*_declared(), written(), *views.values()]))
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


def _declared() -> list[str]:
    columns = (column for table in TABLES.values() for column in table.columns.values())
    return [*(table.meaning for table in TABLES.values()), *(f"{column.name} {column.comment}" for column in columns)]
