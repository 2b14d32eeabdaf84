"""Forward-only migrations: numbered SQL files, each in one transaction with its own record.

The same files lay a DuckDB file and a DuckLake; the latter has no keys, and its views are laid anew only where they
have changed, because everything that is done to a lake stays in its history.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from embaudit.address import Warehouse
from embaudit.errors import WarehouseError
from embaudit.warehouse.keys import without_keys
from embaudit.warehouse.lake import WRITER_TABLE, is_lake
from embaudit.warehouse.transaction import transaction

if TYPE_CHECKING:
    import duckdb

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
    """The migrations this program brings, in order."""
    found = []
    for file in files("embaudit_sql").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.version)


def known_views() -> list[str]:
    """CREATE OR REPLACE VIEW statements, in the order of their file names."""
    views = files("embaudit_sql").joinpath("views").iterdir()
    return [
        file.read_text(encoding="utf-8")
        for file in sorted(views, key=lambda file: file.name)
        if file.name.endswith(".sql")
    ]


def migrate(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> list[int]:
    """Bring a warehouse to this program's schema; returns the versions applied now.

    Raises:
        WarehouseError: if a newer embaudit, or a different edition of one of these migrations, has made it.
    """
    is_keyless = is_lake(connection)
    connection.execute(without_keys(RECORD_TABLE) if is_keyless else RECORD_TABLE)
    applied = require_known_version(connection, place)
    _require_same_migrations(connection, place)
    pending = [migration for migration in known_migrations() if migration.version > applied]
    for migration in pending:
        with transaction(connection):
            connection.execute(without_keys(migration.sql) if is_keyless else migration.sql)
            connection.execute(
                "INSERT INTO schema_migration VALUES (?, ?, ?, now())",
                [migration.version, migration.name, migration.sha256],
            )
    if is_keyless:
        _lay_changed_views(connection)
    else:
        _lay_views(connection)
    return [migration.version for migration in pending]


def _lay_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Views hold no data: they are this program's reading of the tables, and are laid anew each time."""
    with transaction(connection):
        for view in known_views():
            connection.execute(view)


def _lay_changed_views(connection: duckdb.DuckDBPyConnection) -> None:
    """The same in a lake, where each time would be one more snapshot: only if they are not this program's."""
    views = known_views()
    wanted = hashlib.sha256("\n".join(views).encode()).hexdigest()
    row = connection.execute(f"SELECT views_sha256 FROM {WRITER_TABLE}").fetchone()
    if row and row[0] == wanted:
        return
    with transaction(connection):
        for view in views:
            connection.execute(view)
        connection.execute(f"UPDATE {WRITER_TABLE} SET views_sha256 = ?", [wanted])


def upgrade_step(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> str:
    """What to type where a warehouse is older than this program; empty where it is not."""
    version, newest = require_known_version(connection, place), known_migrations()[-1].version
    if version == newest:
        return ""
    return f"The warehouse has schema {version}, this embaudit reads {newest}; every row is kept by: embaudit upgrade"


def require_known_version(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> int:
    """The schema version of a warehouse, 0 for an empty one.

    Raises:
        WarehouseError: if a newer embaudit has migrated it.
    """
    tables = {
        row[0]
        for row in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        ).fetchall()
    }
    if "schema_migration" not in tables:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migration").fetchone()
    version, newest = int(row[0]) if row else 0, known_migrations()[-1].version
    if version > newest:
        raise WarehouseError(
            f"The warehouse {place} has schema {version}, and this embaudit knows up to {newest}.",
            kept="Nothing was changed.",
            next_step="Upgrade embaudit, or name another warehouse: --warehouse PATH",
        )
    return version


def _require_same_migrations(connection: duckdb.DuckDBPyConnection, place: Warehouse) -> None:
    recorded = dict(connection.execute("SELECT version, sha256 FROM schema_migration").fetchall())
    for migration in known_migrations():
        if recorded.get(migration.version, migration.sha256) != migration.sha256:
            raise WarehouseError(
                f"The warehouse {place} was made by another edition of migration {migration.version} "
                f"({migration.name}), so its tables may differ from what this embaudit writes.",
                kept="Nothing was changed; staged results are kept.",
                next_step="Move that file away or name another warehouse, and run the same command again: "
                "it only has to publish.",
            )
