"""Reading the warehouse: the named queries in ``sql/queries`` and a person's own SQL, read-only."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from embaudit.errors import UsageError, WarehouseError
from embaudit.warehouse.connect import open_reader


@dataclass(frozen=True)
class NamedQuery:
    """A question people ask, by name; the first comment line of its file says what it answers."""

    name: str
    question: str
    sql: str


@dataclass(frozen=True)
class QueryResult:
    columns: list[str]
    rows: list[tuple[Any, ...]]


def named_queries() -> dict[str, NamedQuery]:
    """All queries of ``sql/queries``, by name."""
    found = {}
    for file in sorted(files("embaudit_sql").joinpath("queries").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            sql = file.read_text(encoding="utf-8")
            name = file.name.removesuffix(".sql").replace("_", "-")
            found[name] = NamedQuery(name, sql.split("\n", 1)[0].removeprefix("--").strip(), sql)
    return found


def run_query(warehouse: Path, name_or_sql: str) -> QueryResult:
    """Run a named query or one SQL statement on a read-only connection without access to other files.

    Raises:
        UsageError: if the name is unknown or the SQL is wrong.
        WarehouseError: if there is no warehouse, or it is locked or newer.
    """
    import duckdb

    queries = named_queries()
    if name_or_sql in queries:
        sql = queries[name_or_sql].sql
    elif " " not in name_or_sql.strip() and "(" not in name_or_sql:
        near = difflib.get_close_matches(name_or_sql, queries, n=1)
        raise UsageError(
            f"No query is called {name_or_sql!r}.",
            next_step=(f"Did you mean {near[0]}? " if near else "")
            + f"There are: {', '.join(queries)}; or type a SELECT statement in quotes.",
        )
    else:
        sql = name_or_sql
    with open_reader(warehouse) as connection:
        try:
            cursor = connection.execute(sql)
            if cursor.description is None:
                return QueryResult([], [])
            return QueryResult([column[0] for column in cursor.description], cursor.fetchall())
        except duckdb.InvalidInputException as error:
            if "read-only" in str(error):
                raise UsageError(
                    "The warehouse is open read-only here: queries cannot change it.",
                    kept="Nothing was changed.",
                    next_step="Copy the file and open the copy with DuckDB if you want to write.",
                ) from error
            raise UsageError(f"DuckDB refuses this query: {error}") from error
        except (duckdb.PermissionException, duckdb.IOException) as error:
            raise WarehouseError(
                f"DuckDB refuses this query: {error}", kept="Nothing was changed."
            ) from error
        except duckdb.Error as error:
            raise UsageError(
                f"DuckDB cannot run this query: {error}",
                next_step="Tables and columns are listed by: embaudit query 'SHOW ALL TABLES'",
            ) from error
