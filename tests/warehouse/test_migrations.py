"""The schema: made once, on record, in one transaction each, and never by a program that is too old for it."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest
from made_up_migrations import BROKEN, FIRST, NEWEST, SECOND, VIEWS, a_program_with, the_next_program
from own_processes import Start
from plausible import audit_record, expectation, measure_runs
from some_rows import mostly_slow
from warehouse_rows import rows

from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.migrate import (
    LAST_UNRELEASED,
    Migration,
    known_migrations,
    known_views,
    migrate,
    upgrade_step,
)
from embaudit.warehouse.publish import publish
from embaudit.warehouse.query import named_queries, run_query
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable
from embaudit.words.errors import WarehouseError

LOG_TABLES = {"audit", "measure_run", "expectation_result", "schema_migration"}
# Filled by their migration, by what a person imports or accepts, and by maintenance.
OTHER_TABLES = {"published_figure", "downstream_score", "acceptance", "pruning", "audit_name"}
Tables = dict[str, tuple[list[str], list[tuple]]]


def opened(path: Path) -> None:
    with open_writer(path, 0):
        pass


def by_table(path: Path) -> Tables:
    """Every table's columns, and its rows in an order of their own."""
    with duckdb.connect(str(path), read_only=True) as connection:
        found = {}
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            cursor = connection.execute(f"SELECT * FROM {name} ORDER BY ALL")
            found[name] = ([column for (column, *_) in cursor.description], cursor.fetchall())
    return found


def recorded(path: Path) -> list[tuple]:
    return rows(path, "SELECT version, name, sha256 FROM schema_migration ORDER BY version")


def on_record(*made_up: Migration) -> list[tuple]:
    return [(one.version, one.name, one.sha256) for one in [*known_migrations(), *made_up]]


# ---- a fresh warehouse ----


def test_a_fresh_warehouse_has_every_table_and_view(empty_once: Path) -> None:
    tables = {name for (name,) in rows(empty_once, "SELECT table_name FROM duckdb_tables()")}
    views = {name for (name,) in rows(empty_once, "SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    assert tables == {*TABLES, *LOG_TABLES, *OTHER_TABLES}
    assert views == set(known_views())


def test_every_migration_is_on_record_with_its_sha256(empty_once: Path) -> None:
    folder = files("embaudit_sql").joinpath("migrations")
    versions = [version for version, *_ in recorded(empty_once)]
    assert versions == sorted(set(versions))
    for version, name, digest in recorded(empty_once):
        content = folder.joinpath(f"{version:03}_{name}.sql").read_bytes()
        assert digest == hashlib.sha256(content).hexdigest()
    assert recorded(empty_once) == on_record()


def test_migrating_again_does_nothing(empty_warehouse: Path) -> None:
    before = rows(empty_warehouse, "SELECT * FROM schema_migration")
    with open_writer(empty_warehouse, 0) as connection:
        assert migrate(connection, empty_warehouse) == []
    assert rows(empty_warehouse, "SELECT * FROM schema_migration") == before


def test_a_database_with_other_tables_of_these_names_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE token AS SELECT 'mine' AS owner")
    with pytest.raises(WarehouseError, match="token"):
        opened(path)
    assert rows(path, "SELECT owner FROM token") == [("mine",)]
    assert rows(path, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'audit'") == [(0,)]


# ---- views ----


def created(path: Path) -> list[tuple]:
    """Every CREATE gives a view another number."""
    return rows(path, "SELECT view_name, view_oid FROM duckdb_views() WHERE NOT internal ORDER BY 1")


def test_views_that_are_there_are_not_created_again(empty_warehouse: Path) -> None:
    before = created(empty_warehouse)
    opened(empty_warehouse)
    assert created(empty_warehouse) == before


@pytest.mark.parametrize("change", ["CREATE OR REPLACE VIEW leaderboard AS SELECT 1 AS old", "DROP VIEW leaderboard"])
def test_a_view_that_was_changed_or_dropped_comes_back(empty_warehouse: Path, change: str) -> None:
    with open_writer(empty_warehouse, 0) as connection:
        connection.execute("CREATE VIEW my_own AS SELECT 1 AS a")
        connection.execute(change)
    with open_writer(empty_warehouse, 0) as connection:
        columns = [column[0] for column in connection.execute("SELECT * FROM leaderboard").description]
        assert connection.execute("SELECT a FROM my_own").fetchall() == [(1,)]
    assert "socm_mean" in columns


def test_views_of_another_program_are_replaced(empty_warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(VIEWS, "leaderboard", "CREATE OR REPLACE VIEW leaderboard AS SELECT 1 AS another")
        with a_program_with(views=("leaderboard",)):
            opened(empty_warehouse)
    assert rows(empty_warehouse, "SELECT another FROM leaderboard") == [(1,)]
    opened(empty_warehouse)
    assert rows(empty_warehouse, "SELECT socm_mean FROM leaderboard") == []


# ---- a warehouse with rows goes from one version to the next ----


def require_kept(before: Tables, path: Path) -> None:
    """Old rows are there in their old columns, and null in the new ones."""
    after = by_table(path)
    assert set(after) - set(before) == {"made_up"}
    for name, (columns, old_rows) in before.items():
        if name == "schema_migration":
            continue
        now, new_rows = after[name]
        assert now == [*columns, *(["made_up"] if name in ("sticky_summary", "sticky_validation") else [])]
        assert [row[: len(columns)] for row in new_rows] == old_rows
        assert all(value is None for row in new_rows for value in row[len(columns) :])
    assert after["made_up"][1] == []
    assert recorded(path) == on_record(FIRST, SECOND)


def test_an_upgrade_keeps_every_row_and_key(published_warehouse: Path) -> None:
    with a_program_with(views=("made_up_summary",)):
        opened(published_warehouse)
    before = by_table(published_warehouse)
    with the_next_program():
        opened(published_warehouse)
        require_kept(before, published_warehouse)
        # From another connection: the index is read back from the file.
        with open_writer(published_warehouse, 0) as connection:
            for table in ("sticky_summary", "sticky_validation"):
                with pytest.raises(duckdb.ConstraintException, match="primary key"):
                    connection.execute(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
            for view in (*known_views(), *VIEWS):
                connection.execute(f"FROM {view}").fetchall()
            described = connection.execute("SELECT * FROM made_up_summary").description
        assert "made_up" in [column[0] for column in described]


@pytest.mark.slow
def test_every_query_answers_after_an_upgrade(published_warehouse: Path) -> None:
    with the_next_program():
        opened(published_warehouse)
        with open_reader(published_warehouse) as connection:
            for query in named_queries().values():
                connection.execute(query.sql).fetchall()


@pytest.mark.slow
def test_an_upgraded_warehouse_takes_new_audits_and_old_ones_again(
    published_warehouse: Path, staged_once: list[StagedTable]
) -> None:
    altered = ("sticky_summary", "sticky_validation")
    before = {name: found for name, found in by_table(published_warehouse).items() if name in altered}
    staged = [table for table in staged_once if table.table in altered]
    with the_next_program():
        for audit_id in ("a1", "new"):
            publish(published_warehouse, 0, audit_record(audit_id), measure_runs(), [expectation()], staged)
    after = by_table(published_warehouse)
    for name, (columns, old_rows) in before.items():
        now = [row[: len(columns)] for row in after[name][1]]
        assert [row for row in now if row[0] == "a1"] == old_rows
        assert [row[1:] for row in now if row[0] == "new"] == [row[1:] for row in old_rows]


def test_a_migration_that_fails_leaves_the_version_before_it(published_warehouse: Path) -> None:
    before = by_table(published_warehouse)
    with a_program_with(FIRST, BROKEN), pytest.raises(WarehouseError, match="no_such_table"):
        opened(published_warehouse)
    assert recorded(published_warehouse) == on_record(FIRST)
    after = by_table(published_warehouse)
    assert after["sticky_summary"][0][-1] == "made_up"
    unchanged = set(before) - {"sticky_summary", "schema_migration"}
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert set(after) == set(before)
    with the_next_program():
        opened(published_warehouse)
        require_kept(before, published_warehouse)


def test_a_newer_warehouse_is_refused_to_writers_and_readers(empty_warehouse: Path) -> None:
    with the_next_program():
        opened(empty_warehouse)
    before = empty_warehouse.read_bytes()
    says = f"has schema {SECOND.version}, but this embaudit only knows up to {NEWEST}"
    for attempt in (open_writer(empty_warehouse, 0), open_reader(empty_warehouse)):
        with pytest.raises(WarehouseError, match=says) as caught, attempt:
            pass
        assert "Upgrade embaudit" in caught.value.next_step
    assert empty_warehouse.read_bytes() == before


def test_a_warehouse_of_another_edition_of_a_migration_is_refused(empty_warehouse: Path) -> None:
    with a_program_with(FIRST):
        opened(empty_warehouse)
    before = by_table(empty_warehouse)
    edited = Migration(FIRST.version, FIRST.name, f"{FIRST.sql}\nALTER TABLE audit ADD COLUMN made_up DOUBLE;")
    says = f"another edition of migration {FIRST.version} .made_up_column."
    with a_program_with(edited, SECOND), pytest.raises(WarehouseError, match=says) as caught:
        opened(empty_warehouse)
    assert "choose another warehouse" in caught.value.next_step
    assert by_table(empty_warehouse) == before


def test_a_reader_opens_a_warehouse_that_is_not_upgraded_yet(published_once: Path) -> None:
    """Reading must not wait for the next audit: what the older one has can be asked."""
    before = published_once.read_bytes()
    with the_next_program():
        assert len(run_query(published_once, "worst-tokens").rows) == 3
        assert len(run_query(published_once, "leaderboard").rows) == 1
    assert published_once.read_bytes() == before


# ---- kills ----

MIGRATE = """
import sys
from pathlib import Path
import duckdb
from made_up_migrations import FIRST, SECOND, a_program_with
from embaudit.warehouse.migrate import Migration, migrate

def wait() -> int:
    print("waiting", flush=True)
    sys.stdin.read()

connection = duckdb.connect(sys.argv[1])
connection.execute("SET wal_autocheckpoint = '1GB'")
connection.create_function("wait", wait, [], int, side_effects=True)
second = SECOND
if sys.argv[2] == "within":
    second = Migration(SECOND.version, SECOND.name, SECOND.sql + "SELECT wait();")
with a_program_with(FIRST, second):
    migrate(connection, Path(sys.argv[1]))
wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "applied"), [("within", (FIRST,)), ("behind", (FIRST, SECOND))])
def test_a_kill_leaves_the_migrations_that_were_committed(
    published_warehouse: Path,
    process: Start,
    moment: str,
    applied: tuple[Migration, ...],
) -> None:
    """They are in DuckDB's log and not yet in its file."""
    before = by_table(published_warehouse)
    migrating = process(MIGRATE, published_warehouse, moment)
    migrating.says("waiting")
    migrating.kill_9()
    assert published_warehouse.with_name(f"{published_warehouse.name}.wal").stat().st_size > 0
    assert recorded(published_warehouse) == on_record(*applied)
    assert ("made_up" in by_table(published_warehouse)) == (SECOND in applied)
    with the_next_program():
        opened(published_warehouse)
        require_kept(before, published_warehouse)
        with open_writer(published_warehouse, 0) as connection, pytest.raises(duckdb.ConstraintException):
            connection.execute("INSERT INTO sticky_summary SELECT * FROM sticky_summary LIMIT 1")


# ---- what declarations say ----


def written_before_the_release(path: Path, version: int = LAST_UNRELEASED, change: str = "") -> None:
    """A warehouse with the record of migrations that are gone, and perhaps with other tables."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM schema_migration")
        connection.execute(
            "INSERT INTO schema_migration SELECT range, 'gone', 'gone', now() FROM range(1, ? + 1)", [version]
        )
        connection.execute(change or "SELECT 1")


@pytest.mark.slow
def test_a_warehouse_from_before_the_release_keeps_every_row(published_warehouse: Path) -> None:
    before = by_table(published_warehouse)
    written_before_the_release(published_warehouse)
    with open_reader(published_warehouse) as connection:
        assert "has schema 26" in upgrade_step(connection, published_warehouse)
    opened(published_warehouse)
    after = by_table(published_warehouse)
    del before["schema_migration"], after["schema_migration"]
    assert after == before
    assert recorded(published_warehouse)[-1] == on_record()[-1]


@pytest.mark.parametrize("limit", mostly_slow([None, 300], 1))
def test_what_was_asked_of_the_search_moves_to_its_measure(published_warehouse: Path, limit: int | None) -> None:
    """An audit of before and one of now that were asked the same are one question."""
    asked = "SELECT measure, question FROM latest_result ORDER BY ALL"
    own = json.dumps({"sticky": {**({"limit_tokens": limit} if limit else {}), "exhaustive": False}})
    with duckdb.connect(str(published_warehouse)) as connection:
        connection.execute(f"UPDATE audit SET settings = json_merge_patch(settings, '{own}')")
    now = rows(published_warehouse, asked)
    before = """json_merge_patch(settings, '{"sticky": {"limit_tokens": null, "exhaustive": null}}')"""
    with duckdb.connect(str(published_warehouse)) as connection:
        # The key is there, with or without a number: as text, since a patch drops what is null.
        connection.execute(f"UPDATE audit SET settings = left({before}, -1) || ',\"limit_tokens\":{limit or 'null'}}}'")
        connection.execute("DELETE FROM schema_migration WHERE version >= 101")
    opened(published_warehouse)
    assert rows(published_warehouse, asked) == now
    ((settings,),) = rows(published_warehouse, "SELECT settings FROM audit")
    assert "limit_tokens" not in json.loads(settings)
    assert json.loads(settings)["sticky"].get("limit_tokens") == limit


def test_one_that_lacks_the_last_of_these_migrations_is_refused(published_warehouse: Path) -> None:
    written_before_the_release(published_warehouse, LAST_UNRELEASED - 1)
    before = by_table(published_warehouse)
    with pytest.raises(WarehouseError, match=r"from before the first release \(schema 25\)") as caught:
        opened(published_warehouse)
    assert "only publishing is left" in caught.value.next_step
    assert by_table(published_warehouse) == before


@pytest.mark.parametrize(
    ("change", "lost"),
    mostly_slow(
        [
            ("DROP TABLE geometry_dimension", "geometry_dimension"),
            ("ALTER TABLE geometry DROP COLUMN rankme_low", "geometry"),
            # A column that is never null in new rows.
            ("ALTER TABLE sticky_summary DROP COLUMN u", "sticky_summary"),
        ],
        1,
    ),
)
def test_what_a_warehouse_lacks_is_added(published_warehouse: Path, change: str, lost: str) -> None:
    with duckdb.connect(str(published_warehouse)) as connection:
        for view in known_views():
            connection.execute(f"DROP VIEW IF EXISTS {view}")
        connection.execute(change)
    with open_reader(published_warehouse) as connection:
        assert "lacks tables or columns" in upgrade_step(connection, published_warehouse)
    opened(published_warehouse)
    assert set(by_table(published_warehouse)[lost][0]) >= set(TABLES[lost].stored)
    with open_reader(published_warehouse) as connection:
        assert upgrade_step(connection, published_warehouse) == ""
        connection.execute("FROM leaderboard").fetchall()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("ALTER TABLE verdict ALTER COLUMN line TYPE INTEGER USING 1", "line is INTEGER and not VARCHAR"),
        ("DROP TABLE verdict; CREATE TABLE verdict (line VARCHAR)", "it has no column audit_id"),
        (
            "DROP TABLE verdict; CREATE TABLE verdict (audit_id VARCHAR, kind VARCHAR, mine INTEGER NOT NULL)",
            "mine must not be null, and is not declared",
        ),
    ],
)
def test_a_table_that_cannot_take_the_rows_is_left_alone(empty_warehouse: Path, change: str, why: str) -> None:
    with duckdb.connect(str(empty_warehouse)) as connection:
        for view in known_views():
            connection.execute(f"DROP VIEW IF EXISTS {view}")
        connection.execute(change)
    before = by_table(empty_warehouse)
    with pytest.raises(
        WarehouseError, match=f"The table verdict of the warehouse {re.escape(str(empty_warehouse))} .* {why}"
    ):
        opened(empty_warehouse)
    assert by_table(empty_warehouse) == before
