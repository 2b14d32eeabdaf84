"""The schema: laid once, on record, in one transaction, and never by a program that is too old for it."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest
from old_warehouse import NEW_TABLES, first_program, first_version_warehouse, view_name
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all

from embaudit.errors import WarehouseError
from embaudit.expectations.rules import REQUIRED
from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.migrate import Migration, known_migrations, known_views, migrate
from embaudit.warehouse.publish import publish
from embaudit.warehouse.query import named_queries, run_query
from embaudit.warehouse.tables import TABLES

LOG_TABLES = {"audit", "measure_run", "expectation_result", "schema_migration"}
# Filled by their migration, by what a person imports, and by maintenance.
OTHER_TABLES = {"published_figure", "downstream_score", "pruning"}


def rows(path: Path, sql: str) -> list[tuple]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_a_fresh_warehouse_has_every_table_and_view(warehouse: Path) -> None:
    with open_writer(warehouse, 0):
        pass
    tables = {name for (name,) in rows(warehouse, "SELECT table_name FROM duckdb_tables()")}
    views = {name for (name,) in rows(warehouse, "SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    assert tables == {*TABLES, *LOG_TABLES, *OTHER_TABLES}
    assert views == set(map(view_name, known_views()))


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


# ---- a warehouse with rows goes from one version to the next ----

FIRST, *LATER = known_migrations()
# What 001 has, and later ones add columns to.
ALTERED = sorted(
    {name for one in LATER for name in re.findall(r"^ALTER TABLE (\w+) ADD", one.sql, re.MULTILINE)} - NEW_TABLES
)
NEWEST = known_migrations()[-1].version
MIGRATE = """
import sys
from pathlib import Path
import duckdb
from embaudit.warehouse.migrate import migrate
connection = duckdb.connect(sys.argv[1])
connection.execute("SET wal_autocheckpoint = '1GB'")
print(migrate(connection, Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def first_version(warehouse: Path, tmp_path: Path) -> Path:
    return first_version_warehouse(warehouse, tmp_path)


def by_column(path: Path) -> dict[str, tuple[list[str], list[tuple]]]:
    """Every table's columns, and its rows in an order of their own."""
    with duckdb.connect(str(path), read_only=True) as connection:
        names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        found = {}
        for name in names:
            columns = [column for (column, *_) in connection.execute(f"DESCRIBE {name}").fetchall()]
            found[name] = (columns, connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall())
    return found


def require_kept(before: dict[str, tuple[list[str], list[tuple]]], path: Path) -> None:
    """Old rows are there in their old columns, and null in the new ones."""
    after = by_column(path)
    assert set(after) - set(before) == NEW_TABLES | OTHER_TABLES
    for name, (columns, old_rows) in before.items():
        if name == "schema_migration":
            continue
        now, new_rows = after[name]
        assert now[: len(columns)] == columns
        assert [row[: len(columns)] for row in new_rows] == old_rows
        assert all(value is None for row in new_rows for value in row[len(columns) :])
        assert (len(now) > len(columns)) == (name in ALTERED)
    assert all(after[name][1] == [] for name in NEW_TABLES)


def test_rows_of_the_first_version_are_kept_and_null_in_new_columns(first_version: Path) -> None:
    before = by_column(first_version)
    assert [row[0] for row in before["schema_migration"][1]] == [1]
    assert len(before["sticky_validation"][1]) == 20
    with open_writer(first_version, 0):
        pass
    require_kept(before, first_version)
    applied = [version for (version,) in rows(first_version, "SELECT version FROM schema_migration ORDER BY 1")]
    assert applied == list(range(1, NEWEST + 1))


def test_views_and_queries_read_an_upgraded_warehouse(first_version: Path) -> None:
    with open_writer(first_version, 0):
        pass
    for name in map(view_name, known_views()):
        assert rows(first_version, f"SELECT count(*) FROM {name}")
    for name in named_queries():
        run_query(first_version, name)
    assert len(rows(first_version, "SELECT * FROM sticky_token")) == 6
    assert rows(first_version, "SELECT DISTINCT checkpoints FROM sticky_across_checkpoints") == [(2,)]
    answer = run_query(first_version, "sticky-search")
    searched = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    assert [(row["encodes"], row["times_fewer"], row["miss_rate"]) for row in searched] == [(266, None, None)] * 4


def test_an_upgraded_warehouse_takes_new_audits_and_old_ones_again(first_version: Path, tmp_path: Path) -> None:
    before = by_column(first_version)
    staged = stage_all(tmp_path / "new", plausible_rows("c1", "model/c1"))
    expected = {name: len(found) for name, found in plausible_rows().items()}
    for audit_id in ("new", "old1"):
        assert publish(first_version, 0, audit_record(audit_id), measure_runs(), [expectation()], staged) == expected
    for name in (*ALTERED, *(name for name in NEW_TABLES if TABLES[name].scope == "audit")):
        counts = dict(rows(first_version, f"SELECT audit_id, count(*) FROM {name} GROUP BY 1"))
        old = {} if name in NEW_TABLES else {"old2": expected[name]}
        assert counts == {"new": expected[name], "old1": expected[name], **old}
    is_filled = "SELECT audit_id, bool_and({} IS NOT NULL), bool_or({} IS NOT NULL) FROM {} GROUP BY 1 ORDER BY 1"
    for name, column in (
        *(("sticky_score", "is_pilot"), ("sticky_validation", "p_value"), ("sticky_summary", "search")),
        *(("socm_text", "is_undefined"), ("socm_summary", "socm_q50")),
    ):
        found = rows(first_version, is_filled.format(column, column, name))
        assert found == [("new", True, True), ("old1", True, True), ("old2", False, False)]
    columns, old_rows = before["sticky_validation"]
    kept = rows(
        first_version, f"SELECT {', '.join(columns)} FROM sticky_validation WHERE audit_id = 'old2' ORDER BY ALL"
    )
    assert kept == [row for row in old_rows if row[0] == "old2"]


@pytest.mark.parametrize("table", ALTERED)
def test_an_altered_table_keeps_its_primary_key(first_version: Path, table: str) -> None:
    with open_writer(first_version, 0):
        pass
    # From another connection: the index is read back from the file.
    with open_writer(first_version, 0) as connection, pytest.raises(duckdb.ConstraintException, match="primary key"):
        connection.execute(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")


def test_a_migration_that_fails_behind_its_alterations_leaves_rows_and_keys(
    first_version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = by_column(first_version)
    first, second = known_migrations()[:2]
    broken = Migration(2, second.name, second.sql + "\nSELECT * FROM no_such_table;")
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "known_migrations", lambda: [first, broken])
        with pytest.raises(WarehouseError, match="no_such_table"), open_writer(first_version, 0):
            pass
    assert by_column(first_version) == before
    with open_writer(first_version, 0):
        pass
    require_kept(before, first_version)


def test_a_kill_behind_the_commit_is_read_back_from_the_log(
    first_version: Path, process: Callable[..., subprocess.Popen[str]]
) -> None:
    """The alterations of tables with keys are in DuckDB's log and not yet in its file."""
    before = by_column(first_version)
    migrating = process(MIGRATE, first_version)
    assert migrating.stdout is not None
    assert migrating.stdout.readline() == f"{list(range(2, NEWEST + 1))}\n"
    migrating.kill()
    migrating.wait()
    assert first_version.with_name(f"{first_version.name}.wal").stat().st_size > 0
    require_kept(before, first_version)
    with open_writer(first_version, 0) as connection, pytest.raises(duckdb.ConstraintException):
        connection.execute("INSERT INTO sticky_score SELECT * FROM sticky_score LIMIT 1")


def test_the_first_program_refuses_an_upgraded_warehouse(first_version: Path) -> None:
    with open_writer(first_version, 0):
        pass
    before = first_version.read_bytes()
    refused = pytest.raises(WarehouseError, match=f"has schema {NEWEST}, and this embaudit knows up to 1")
    with first_program(), refused, open_writer(first_version, 0):
        pass
    assert first_version.read_bytes() == before


def test_a_reader_opens_a_warehouse_that_is_not_upgraded_yet(first_version: Path) -> None:
    """Reading must not wait for the next audit: what 001 has can be asked."""
    before = first_version.read_bytes()
    assert len(run_query(first_version, "worst-tokens").rows) == 6
    assert len(run_query(first_version, "leaderboard").rows) == 2
    assert first_version.read_bytes() == before
