"""The schema of a warehouse: tables as declared, forward-only migrations for what declarations do not say, and views.

A migration is a numbered SQL file, applied in one transaction with its own record. Published tables and columns that
are missing are added as their row classes declare them (``embaudit.warehouse.migrate``). Views are recreated whenever
they differ from this program's definitions. A DuckDB file and a DuckLake, which has no keys, get the same statements.

Published tables in a warehouse, as their row classes declare them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import duckdb

from embaudit.declared.figure import cell_view, figure_view, interval_view
from embaudit.declared.table import DeclaredTable
from embaudit.system.settings import Warehouse
from embaudit.warehouse.lake import is_lake, literal
from embaudit.warehouse.tables import SUMMARIES, TABLES
from embaudit.warehouse.write import describe, marked, meaning_of_view, transaction, without_keys
from embaudit.words.errors import WarehouseError

COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() WHERE database_name = current_database()
"""

# Columns of earlier snapshots. Endpoints and indexes are questions like others, and counted among the answers.
FORMER = {"watch_run": ("endpoints", "indexes")}


def table_changes(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> list[str]:
    """The statements after which the warehouse has every declared table and column; none if it has them.

    A column that was declared later is null in the rows from before it, whatever it may be in new ones.

    Raises:
        WarehouseError: if a table of that name cannot take the declared rows: it is somebody else's, or a column's type
            has changed.
    """
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for table, column, kind, is_nullable in connection.execute(COLUMNS).fetchall():
        found.setdefault(table, {})[column] = kind, is_nullable
    return [change for table in TABLES.values() for change in _changes_of(table, found.get(table.name), place)]


def _changes_of(table: DeclaredTable, columns: dict[str, tuple[str, bool]] | None, place: Warehouse) -> Iterator[str]:
    if columns is None:
        yield table.ddl
        return
    stored = table.stored
    for name, kind in stored.items():
        if name in columns and columns[name][0] != kind:
            raise _other(table, place, f"{name} is {columns[name][0]} and not {kind}")
        if name not in columns:
            if name in table.primary_key:
                raise _other(table, place, f"it has no column {name}")
            yield f'ALTER TABLE {table.name} ADD COLUMN "{name}" {kind};'
    for name, (_, is_nullable) in columns.items():
        if name in FORMER.get(table.name, ()):
            yield f'ALTER TABLE {table.name} DROP COLUMN "{name}";'
        elif name not in stored and not is_nullable:
            raise _other(table, place, f"{name} must not be null, and is not declared")


def _other(table: DeclaredTable, place: Warehouse, why: str) -> WarehouseError:
    return WarehouseError(
        f"The table {table.name} of the warehouse {place} is not the one that this embaudit writes: {why}.",
        kept="Nothing was changed; staged results are kept.",
        next_step="Move that file or choose another warehouse (--warehouse PATH), and run the same command again: only "
        "publishing is left.",
    )


# Of the migrations before the first release; a warehouse that has them all has the tables that the first one makes.
LAST_UNRELEASED = 26
RECORD_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migration (
    version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, sha256 VARCHAR NOT NULL, applied TIMESTAMPTZ NOT NULL
)
"""


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def known_migrations() -> list[Migration]:
    """This program's migrations, in order."""
    found = []
    for file in files("embaudit_sql").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.version)


@cache
def known_views() -> dict[str, str]:
    """The CREATE OR REPLACE VIEW statements by view name, in numeric order; not to be changed."""
    folder = files("embaudit_sql").joinpath("views")
    found = {file.name.removesuffix(".sql"): file for file in folder.iterdir() if file.name.endswith(".sql")}
    statements = {name: file.read_text(encoding="utf-8") for name, file in found.items()}
    summaries = tuple(SUMMARIES.values())
    # Generated from the declarations; the numbers are their positions among the files.
    statements["089_summary_cell"] = cell_view(summaries)
    statements["090_summary_figure"] = figure_view()
    statements["122_summary_interval"] = interval_view(summaries)
    return {name.partition("_")[2]: statements[name] for name in sorted(statements)}


def migrate(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> list[int]:
    """Upgrade a warehouse to the current schema; returns the versions applied.

    Raises:
        WarehouseError: if it was written by a newer embaudit or a different edition of a migration.
    """
    is_keyless = is_lake(connection)
    connection.execute(without_keys(RECORD_TABLE) if is_keyless else RECORD_TABLE)
    applied = require_known_version(connection, place)
    _require_same_migrations(connection, place)
    # First of all, so that a database with other tables of these names is left as it is.
    changes = table_changes(connection, place)
    pending = [migration for migration in known_migrations() if migration.version > applied]
    for migration in pending:
        with transaction(connection):
            connection.execute(without_keys(migration.sql) if is_keyless else migration.sql)
            connection.execute(
                "INSERT INTO schema_migration VALUES (?, ?, ?, now())",
                [migration.version, migration.name, migration.sha256],
            )
    if pending:
        changes = table_changes(connection, place)
    if changes:
        with transaction(connection):
            for statement in changes:
                connection.execute(without_keys(statement) if is_keyless else statement)
    has_changed, views = bool(pending or changes), known_views()
    created = _create_views(connection, views, even_if_there=has_changed)
    # A view that is created again loses the comments on its columns, which a lake does not have.
    describe(connection, views, even_if_there=has_changed or (created and not is_keyless))
    return [migration.version for migration in pending]


def _create_views(connection: duckdb.DuckDBPyConnection, views: dict[str, str], *, even_if_there: bool) -> bool:
    """Create all views unless they are all up to date; returns whether it did.

    Each view's comment ends with the hash of its statement, which is lost if it is replaced by hand. Creating them
    takes a tenth of a second, and a lake keeps every change in its history.

    Args:
        even_if_there: create them anyway, because the tables have changed and views do not accept new columns.
    """
    comments = {name: _comment_of(sql) for name, sql in views.items()}
    found = connection.execute(
        "SELECT view_name, comment FROM duckdb_views() WHERE database_name = current_database() AND NOT internal"
    ).fetchall()
    if not even_if_there and comments.items() <= dict(found).items():
        return False
    with transaction(connection):
        for name, sql in views.items():
            connection.execute(sql)
            connection.execute(f"COMMENT ON VIEW {name} IS {literal(comments[name])}")
    return True


@cache
def _comment_of(view: str) -> str:
    return marked(meaning_of_view(view), view)


def upgrade_step(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> str:
    """What to type if a warehouse is older than this program; empty if it is not."""
    version, newest = require_known_version(connection, place), known_migrations()[-1].version
    if version != newest:
        lacks = f"has schema {version}, but this embaudit reads {newest}"
    elif table_changes(connection, place):
        lacks = "lacks tables or columns that this embaudit, or a measure installed beside it, reads"
    else:
        return ""
    return f"The warehouse {lacks}. To keep every row: embaudit upgrade"


def require_newest(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> None:
    """Raises:
    WarehouseError: if a warehouse is older than this program and lacks tables that pages need."""
    if step := upgrade_step(connection, place):
        raise WarehouseError(f"The warehouse {place} was written by an older embaudit.", next_step=step)


def require_known_version(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> int:
    """The schema version of a warehouse, 0 for an empty one.

    Raises:
        WarehouseError: if it was migrated by a newer embaudit.
    """
    # A list of all tables takes longer than all else of opening one that is not changed.
    try:
        row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migration").fetchone()
    except duckdb.CatalogException:
        return 0
    version, newest = int(row[0]) if row else 0, known_migrations()[-1].version
    if LAST_UNRELEASED != version < known_migrations()[0].version and version:
        raise WarehouseError(
            f"The warehouse {place} was written by an embaudit from before the first release (schema {version}).",
            kept="Nothing was changed; staged results are kept.",
            next_step="Move that file or choose another warehouse (--warehouse PATH), and run the same command again: "
            "only publishing is left.",
        )
    if version > newest:
        raise WarehouseError(
            f"The warehouse {place} has schema {version}, but this embaudit only knows up to {newest}.",
            kept="Nothing was changed.",
            next_step="Upgrade embaudit, or choose another warehouse: --warehouse PATH",
        )
    return version


def _require_same_migrations(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> None:
    recorded = dict(connection.execute("SELECT version, sha256 FROM schema_migration").fetchall())
    for migration in known_migrations():
        if recorded.get(migration.version, migration.sha256) != migration.sha256:
            raise WarehouseError(
                f"The warehouse {place} was created by another edition of migration {migration.version} "
                f"({migration.name}), so its tables may differ from what this embaudit writes.",
                kept="Nothing was changed; staged results are kept.",
                next_step="Move that file or choose another warehouse, and run the same command again: only publishing "
                "is left.",
            )
