"""Read-only queries on the warehouse: the named ones in ``sql/queries``, the user's SQL, and an audit's severe tokens.

Restricts queries on a DuckLake, for which disabling external access is not sufficient.

A lake's reader has the PostgreSQL and DuckLake extensions loaded and can read the lake's data folder, so table
functions that open connections or list or read files would work, and COPY could write into that folder. Statements are
therefore parsed first, and only table functions that stay inside the warehouse are allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import duckdb
from duckdb import StatementType

from embaudit.measures import MEASURES
from embaudit.remedies.screening import SEVERITIES, SevereToken, Severity, TokenList
from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.lake import is_lake
from embaudit.warehouse.migrate import upgrade_step
from embaudit.words.errors import UsageError, WarehouseError, did_you_mean

if TYPE_CHECKING:
    from pandas import DataFrame


def severe_tokens(connection: duckdb.DuckDBPyConnection, audit_id: str, severity: Severity) -> TokenList:
    """The validated candidates of at least this severity, worst first; possibly empty.

    Raises:
        UsageError: if the audit does not include the sticky measure.
    """

    def rows(sql: str, **more: Any) -> list[dict[str, Any]]:
        cursor = connection.execute(sql, {"audit": audit_id, **more})
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    (facts,) = rows(
        "SELECT audit_id, audit.checkpoint_id, coalesce(audit.settings ->> '$.source', source) AS checkpoint, "
        "tokenizer_sha256, max_length, coalesce(prompt, '') AS prompt, "
        "CAST(audit.settings ->> '$.sticky.copies' AS INTEGER) AS copies "
        "FROM audit JOIN checkpoint USING (checkpoint_id) WHERE audit_id = $audit"
    )
    if not rows("SELECT 1 FROM sticky_summary WHERE audit_id = $audit LIMIT 1"):
        raise UsageError(
            f"The audit {audit_id} did not look for sticky tokens.",
            next_step=f"Run: embaudit audit {facts['checkpoint']} --measures sticky",
        )
    at_least = list(SEVERITIES[: SEVERITIES.index(severity) + 1])
    ((validated, worst),) = (
        row.values()
        for row in rows(
            "SELECT count(*) AS validated, list(token_id ORDER BY loss DESC, token_id) "
            "FILTER (list_contains($at_least, severity)) AS worst FROM sticky_token WHERE audit_id = $audit",
            at_least=at_least,
        )
    )
    known = {
        row["token_id"]: row
        for row in rows(
            "SELECT sticky_token.token_id, token.token, token.text, token.is_reachable, loss, loss_low, loss_high, "
            "severity FROM sticky_token JOIN token USING (checkpoint_id, token_id) WHERE audit_id = $audit"
        )
    }
    estimates = rows(
        "SELECT estimated, estimated_low, estimated_high FROM sticky_severity "
        "WHERE audit_id = $audit AND severity = $severity",
        severity=severity,
    )
    return TokenList(
        **facts,
        **(estimates[0] if estimates else {}),
        severity=severity,
        validated=validated,
        tokens=tuple(SevereToken(**known[token_id]) for token_id in worst or ()),
    )


HARMLESS = {
    *("generate_series", "json_each", "json_tree", "pragma_table_info", "range", "repeat", "unnest"),
    *("duckdb_columns", "duckdb_constraints", "duckdb_functions", "duckdb_tables", "duckdb_types", "duckdb_views"),
    *("ducklake_snapshots", "ducklake_table_info"),
}
EXPLAIN = re.compile(r"\s*EXPLAIN\s*(?:\([^)]*\)|ANALYZE\b)?\s*", re.IGNORECASE)


def require_inside(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse statements that do more than read the warehouse.

    Raises:
        WarehouseError: if it is not a SELECT, or calls a table function with wider access.
    """
    asked = EXPLAIN.sub("", sql, count=1) if EXPLAIN.match(sql) else sql
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [asked]).fetchone()
    parsed = json.loads(row[0]) if row else {"error": True}
    if parsed.get("error"):
        if parsed.get("error_type") == "parser":
            # DuckDB reports syntax errors when it runs the statement.
            return
        raise WarehouseError(
            "A query on a DuckLake must be one SELECT statement.",
            kept="Nothing was changed.",
            next_step="For anything else, run embaudit export FILE and open that copy with DuckDB.",
        )
    for name in _table_functions(parsed):
        if name not in HARMLESS:
            raise WarehouseError(
                f"The table function {name} can access more than the warehouse, so queries on a DuckLake must not call "
                "it.",
                kept="Nothing was changed.",
                next_step="For anything else, run embaudit export FILE and open that copy with DuckDB.",
            )


def _table_functions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "TABLE_FUNCTION":
            yield str(node["function"]["function_name"]).lower()
        for value in node.values():
            yield from _table_functions(value)
    elif isinstance(node, list):
        for value in node:
            yield from _table_functions(value)


UNCHANGED = "Nothing was changed."


@dataclass(frozen=True)
class NamedQuery:
    """A named query; the first comment line of its file describes it."""

    name: str
    question: str
    sql: str


@dataclass(frozen=True)
class QueryResult:
    columns: list[str]
    rows: list[tuple[Any, ...]]


def named_queries() -> dict[str, NamedQuery]:
    """All queries by name: those of ``sql/queries``, and those in a measure's folder.

    Raises:
        UsageError: if a measure of another package brings one whose name is taken.
    """
    files_of = {
        package: folder.iterdir()
        for package in ("embaudit_sql", *(measure.package for measure in MEASURES.values()))
        if (folder := files(package).joinpath("queries")).is_dir()
    }
    listed = [(file, package) for package, several in files_of.items() for file in several]
    found: dict[str, NamedQuery] = {}
    for file, package in sorted(listed, key=lambda one: one[0].name):
        if file.name.endswith(".sql"):
            sql = file.read_text(encoding="utf-8")
            name = file.name.removesuffix(".sql").replace("_", "-")
            if name in found:
                raise UsageError(
                    f"Two queries are called {name}; {package} brings one of them.",
                    next_step=f"Rename it there, or uninstall the package: pip uninstall {package.split('.')[0]}",
                )
            found[name] = NamedQuery(name, sql.split("\n", 1)[0].removeprefix("--").strip(), sql)
    return found


def run_query(warehouse: Warehouse | str, name_or_sql: str) -> QueryResult:
    """Run a named query or one SQL statement on a read-only connection without access to other files.

    Raises:
        UsageError: if the name is unknown or the SQL is invalid.
        WarehouseError: if there is no warehouse, it is locked or newer, or DuckDB rejects the SQL.
    """
    with _run(warehouse, name_or_sql) as cursor:
        if cursor.description is None:
            return QueryResult([], [])
        return QueryResult([column[0] for column in cursor.description], cursor.fetchall())


def query_frame(warehouse: Warehouse | str, name_or_sql: str) -> DataFrame:
    """The same as a pandas DataFrame.

    Raises:
        UsageError, WarehouseError: as ``run_query``.
    """
    with _run(warehouse, name_or_sql) as cursor:
        return cursor.df()


def table_frame(warehouse: Warehouse | str, name: str, audit_id: str) -> DataFrame:
    """A table or view: one audit's rows if it has an audit_id, otherwise all rows.

    Raises:
        UsageError: if there is no such table or view.
        WarehouseError: if there is no warehouse, or it is locked or newer.
    """
    with (
        open_reader(warehouse) as connection,
        _translate_query_errors(upgrade_step(connection, warehouse_at(warehouse))),
    ):
        names = [row[0] for row in connection.execute("SHOW TABLES").fetchall()]
        if name not in names:
            raise UsageError(
                f"The warehouse has no table or view {name!r}.",
                next_step=did_you_mean(name, names) + "Tables are described in docs/tables.md.",
            )
        columns = [row[0] for row in connection.execute(f'DESCRIBE "{name}"').fetchall()]
        where, parameters = (" WHERE audit_id = ?", [audit_id]) if "audit_id" in columns else ("", [])
        return connection.execute(f'SELECT * FROM "{name}"{where}', parameters).df()


@contextmanager
def _run(warehouse: Warehouse | str, name_or_sql: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connection with a query's result, to be read before it closes."""
    sql = _sql_of(name_or_sql)
    with (
        open_reader(warehouse) as connection,
        _translate_query_errors(upgrade_step(connection, warehouse_at(warehouse))),
    ):
        _require_single_query(connection, sql)
        if is_lake(connection):
            require_inside(connection, sql)
        yield connection.execute(sql)


def _sql_of(name_or_sql: str) -> str:
    queries = named_queries()
    if name_or_sql in queries:
        return queries[name_or_sql].sql
    # A single word is a name; SQL contains at least whitespace or a parenthesis.
    if not name_or_sql.strip() or not any(sign in name_or_sql.strip() for sign in " \t\n("):
        raise UsageError(
            f"Unknown query {name_or_sql!r}.",
            next_step=did_you_mean(name_or_sql, queries)
            + f"There are: {', '.join(queries)}; or type a SELECT statement in quotes.",
        )
    return name_or_sql


def _require_single_query(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Accept only a single statement that reads something.

    The read-only connection protects the tables, but of several results only the last would be shown, and CALL
    enable_logging to a forbidden file makes duckdb 1.5.5 abort the process.
    """
    kinds = [statement.type for statement in connection.extract_statements(sql)]
    asking = [kind for kind in kinds if kind in (StatementType.SELECT, StatementType.EXPLAIN)]
    if StatementType.CALL in kinds:
        raise UsageError("CALL is not allowed in queries.", kept=UNCHANGED, next_step="Type a SELECT statement.")
    if len(asking) > 1 or not kinds:
        raise UsageError(
            f"A query must be a single statement; this has {len(kinds) or 'none'}.",
            next_step="Type one SELECT statement in quotes.",
        )


@contextmanager
def _translate_query_errors(upgrade: str) -> Iterator[None]:
    """Translate DuckDB's errors; ``upgrade`` is the next step if the warehouse is older."""
    try:
        yield
    except (duckdb.PermissionException, duckdb.IOException) as error:
        raise WarehouseError(
            f"DuckDB rejects this query: {_one_paragraph(error)}",
            kept=UNCHANGED,
            next_step="Queries can only read the warehouse.",
        ) from error
    except duckdb.InvalidInputException as error:
        if "read-only" in str(error):
            raise UsageError(
                "The warehouse is open read-only here: queries cannot change it.",
                kept=UNCHANGED,
                next_step="To write, copy the file and open the copy with DuckDB.",
            ) from error
        raise UsageError(
            f"DuckDB rejects this query: {_one_paragraph(error)}",
            kept=UNCHANGED,
            next_step="A query reads tables of the warehouse, and nothing else: embaudit query 'SHOW ALL TABLES'",
        ) from error
    except duckdb.Error as error:
        raise UsageError(
            f"DuckDB cannot run this query: {_one_paragraph(error)}",
            next_step=upgrade or "To list tables and columns: embaudit query 'SHOW ALL TABLES'",
        ) from error


def _one_paragraph(error: Exception) -> str:
    """DuckDB's message without the excerpt of the statement and the caret below it."""
    message = str(error).split("\n\nLINE ", 1)[0]
    return " ".join(message.split())
