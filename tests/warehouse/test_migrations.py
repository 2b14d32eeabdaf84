"""The schema: laid once, on record, in one transaction, and never by a program that is too old for it."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

from embaudit.errors import WarehouseError
from embaudit.expectations.suites import REQUIRED
from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.migrate import Migration, known_migrations, known_views, migrate
from embaudit.warehouse.tables import TABLES

LOG_TABLES = {"audit", "measure_run", "expectation_result", "schema_migration"}


def rows(path: Path, sql: str) -> list[tuple]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_a_fresh_warehouse_has_every_table_and_view(warehouse: Path) -> None:
    with open_writer(warehouse, 0):
        pass
    tables = {name for (name,) in rows(warehouse, "SELECT table_name FROM duckdb_tables()")}
    views = {name for (name,) in rows(warehouse, "SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    assert tables == {*TABLES, *LOG_TABLES}
    assert views == {re.search(r"VIEW (\w+)", sql)[1] for sql in known_views()}  # type: ignore[index]


def test_every_migration_is_on_record_with_its_sha256(warehouse: Path) -> None:
    with open_writer(warehouse, 0):
        pass
    recorded = rows(warehouse, "SELECT version, name, sha256 FROM schema_migration ORDER BY version")
    folder = files("embaudit_sql").joinpath("migrations")
    expected = [
        (one.version, one.name, hashlib.sha256(folder.joinpath(f"{one.version:03}_{one.name}.sql").read_bytes()))
        for one in known_migrations()
    ]
    assert recorded == [(version, name, digest.hexdigest()) for version, name, digest in expected]
    assert [version for version, _, _ in recorded] == list(range(1, len(recorded) + 1))


def test_migrating_again_does_nothing(warehouse: Path) -> None:
    with open_writer(warehouse, 0):
        pass
    before = rows(warehouse, "SELECT * FROM schema_migration")
    with open_writer(warehouse, 0) as connection:
        assert migrate(connection, warehouse) == []
    assert rows(warehouse, "SELECT * FROM schema_migration") == before


def test_a_migration_that_fails_leaves_nothing_of_itself(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_writer(warehouse, 0):
        pass
    newest = known_migrations()[-1].version
    broken = Migration(newest + 1, "broken", "CREATE TABLE half (a INTEGER); SELECT * FROM no_such_table;")
    mended = Migration(newest + 1, "mended", "CREATE TABLE whole (a INTEGER);")
    known = known_migrations()
    monkeypatch.setattr(migrations, "known_migrations", lambda: [*known, broken])
    with pytest.raises(WarehouseError, match="no_such_table"), open_writer(warehouse, 0):
        pass
    assert rows(warehouse, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half'") == [(0,)]
    assert rows(warehouse, "SELECT max(version) FROM schema_migration") == [(newest,)]
    monkeypatch.setattr(migrations, "known_migrations", lambda: [*known, mended])
    with open_writer(warehouse, 0) as connection:
        assert connection.execute("SELECT count(*) FROM whole").fetchall() == [(0,)]


def test_a_newer_warehouse_is_refused_to_writers_and_readers(warehouse: Path) -> None:
    with open_writer(warehouse, 0) as connection:
        connection.execute("INSERT INTO schema_migration VALUES (999, 'tomorrow', 'ab', now())")
    before = warehouse.read_bytes()
    for opened in (open_writer(warehouse, 0), open_reader(warehouse)):
        with pytest.raises(WarehouseError, match="has schema 999, and this embaudit knows up to") as caught, opened:
            pass
        assert "Upgrade embaudit" in caught.value.next_step
    assert warehouse.read_bytes() == before


def test_a_warehouse_of_another_edition_of_a_migration_is_refused(warehouse: Path) -> None:
    with open_writer(warehouse, 0) as connection:
        connection.execute("UPDATE schema_migration SET sha256 = 'other' WHERE version = 1")
    with pytest.raises(WarehouseError, match="another edition of migration 1"), open_writer(warehouse, 0):
        pass


def test_views_are_laid_anew(warehouse: Path) -> None:
    with open_writer(warehouse, 0) as connection:
        connection.execute("CREATE OR REPLACE VIEW leaderboard AS SELECT 1 AS old")
    with open_writer(warehouse, 0) as connection:
        columns = [column[0] for column in connection.execute("SELECT * FROM leaderboard").description]
    assert "socm_mean" in columns


def test_a_database_with_other_tables_of_these_names_is_not_touched(warehouse: Path) -> None:
    warehouse.parent.mkdir()
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE TABLE token AS SELECT 'mine' AS owner")
    with pytest.raises(WarehouseError, match="token"), open_writer(warehouse, 0):
        pass
    assert rows(warehouse, "SELECT owner FROM token") == [("mine",)]
    assert rows(warehouse, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'audit'") == [(0,)]


@pytest.mark.parametrize("table", TABLES)
def test_the_keys_of_a_table_are_its_primary_key(warehouse: Path, table: str) -> None:
    with open_writer(warehouse, 0) as connection:
        found = connection.execute(
            "SELECT constraint_column_names FROM duckdb_constraints() "
            "WHERE table_name = ? AND constraint_type = 'PRIMARY KEY'",
            [table],
        ).fetchall()
    own = TABLES[table]
    scope = ("audit_id",) if own.scope == "audit" else ()
    assert found == ([] if own.is_bulk else [([*scope, *own.keys],)])


@pytest.mark.parametrize("table", TABLES)
def test_what_the_warehouse_requires_the_suites_require(warehouse: Path, table: str) -> None:
    """Otherwise a null would fail the transaction without naming its row."""
    with open_writer(warehouse, 0) as connection:
        found = connection.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND NOT is_nullable", [table]
        ).fetchall()
    assert {name for (name,) in found} - {"audit_id"} <= {*TABLES[table].keys, *REQUIRED[table]}
