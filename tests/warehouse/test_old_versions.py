"""Every earlier version of the warehouse, from its frozen file, is brought to today's schema with every row."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from frozen import FOLDER, VERSIONS, load, rows_of
from plausible import audit_record, expectation, measure_runs, plausible_rows
from postgres_server import Postgres

from embaudit.address import Lake, Warehouse
from embaudit.errors import WarehouseError
from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.connect_lake import connect_memory
from embaudit.warehouse.lake import attach, load_extensions, make_writer_row
from embaudit.warehouse.migrate import known_migrations
from embaudit.warehouse.publish import StagedTable, publish
from embaudit.warehouse.query import named_queries
from embaudit.warehouse.tables import TABLES

NEWEST = known_migrations()[-1].version


def laid(version: int, path: Path) -> dict[str, Any]:
    path.parent.mkdir(exist_ok=True)
    with duckdb.connect(str(path)) as connection:
        return load(version, connection)


def require_every_row(place: Warehouse, frozen: dict[str, Any]) -> None:
    """Old rows stand in their old columns as they did, and new columns are null for them."""
    with open_reader(place, 30) as connection:
        connection.execute("BEGIN TRANSACTION")
        for name, table in frozen["tables"].items():
            if name == "schema_migration":
                continue
            columns = [column for column, *_ in connection.execute(f"DESCRIBE {name}").fetchall()]
            assert columns[: len(table["columns"])] == table["columns"], name
            found = sorted(rows_of(connection, name, columns), key=repr)
            width = len(table["columns"])
            assert [row[:width] for row in found] == sorted(table["rows"], key=repr), name
            assert all(value is None for row in found for value in row[width:]), name
        applied = connection.execute("SELECT version, sha256 FROM schema_migration ORDER BY 1").fetchall()
    assert applied == [(one.version, one.sha256) for one in known_migrations()]


def test_every_earlier_version_is_frozen_and_small() -> None:
    assert set(range(1, NEWEST)) <= set(VERSIONS), "before a new migration: python tests/frozen.py"
    assert max(path.stat().st_size for path in FOLDER.iterdir()) < 50_000


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_is_upgraded_with_every_row(warehouse: Path, version: int, staged: list[StagedTable]) -> None:
    frozen = laid(version, warehouse)
    assert frozen["version"] == version
    assert all(table["rows"] for table in frozen["tables"].values())
    with open_writer(warehouse, 0) as connection:
        for query in named_queries().values():
            connection.execute(query.sql).fetchall()
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        for (view,) in views:
            connection.execute(f"FROM {view}").fetchall()
        # Both audits are there for whoever asks, and new ones stand beside them.
        assert connection.execute("SELECT count(*) FROM latest_audit").fetchall() == [(2,)]
    require_every_row(warehouse, frozen)
    publish(warehouse, 0, audit_record("new"), measure_runs(), [expectation()], staged)
    with open_reader(warehouse) as connection:
        for name, rows in plausible_rows().items():
            if TABLES[name].scope == "audit":
                found = connection.execute(f"SELECT count(*) FROM {name} WHERE audit_id = 'new'").fetchall()
                assert found == [(len(rows),)], name


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_an_older_program_refuses_the_next_version(
    warehouse: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid(version + 1, warehouse)
    before = warehouse.read_bytes()
    known = known_migrations()[:version]
    monkeypatch.setattr(migrations, "known_migrations", lambda: known)
    for opened in (open_writer(warehouse, 0), open_reader(warehouse)):
        refused = pytest.raises(
            WarehouseError, match=f"has schema {version + 1}, and this embaudit knows up to {version}"
        )
        with refused, opened:
            pass
    assert warehouse.read_bytes() == before


UPGRADE = """
import sys
from pathlib import Path
from embaudit.warehouse.connect import open_writer
import duckdb
print("upgrading", flush=True)
with open_writer(Path(sys.argv[1]), 10):
    print("upgraded", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 4])
def test_a_kill_while_upgrading_leaves_some_version_with_every_row(
    warehouse: Path, version: int, tmp_path: Path, process: Callable[..., subprocess.Popen[str]]
) -> None:
    laid(version, tmp_path / "whole.duckdb")
    whole = process(UPGRADE, tmp_path / "whole.duckdb")
    assert whole.stdout is not None
    assert whole.stdout.readline() == "upgrading\n"
    started = time.monotonic()
    assert whole.stdout.readline() == "upgraded\n"
    seconds = time.monotonic() - started
    found = set()
    for attempt in range(8):
        path = tmp_path / f"killed-{attempt}.duckdb"
        frozen = laid(version, path)
        upgrading = process(UPGRADE, path)
        assert upgrading.stdout is not None
        assert upgrading.stdout.readline() == "upgrading\n"
        time.sleep(seconds * attempt / 8)
        upgrading.kill()
        upgrading.wait()
        with duckdb.connect(str(path), read_only=True) as connection:
            recorded = connection.execute("SELECT version, sha256 FROM schema_migration ORDER BY 1").fetchall()
            assert recorded == [(one.version, one.sha256) for one in known_migrations()[: len(recorded)]]
            # The tables of the versions on record are there, and none of the next.
            tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        with duckdb.connect() as expected:
            expected.execute(migrations.RECORD_TABLE)
            for one in known_migrations()[: len(recorded)]:
                expected.execute(one.sql)
            assert tables == {row[0] for row in expected.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        found.add(len(recorded))
        with open_writer(path, 0):
            pass
        require_every_row(path, frozen)
    assert min(found) < NEWEST, "no attempt was killed in time: the test proves nothing"


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 5, 9])
def test_a_lake_of_an_earlier_version_is_upgraded_too(
    lake: Lake, version: int, staged: list[StagedTable], postgres: Postgres
) -> None:
    assert postgres
    lake.data_path.mkdir()
    connection = connect_memory("1GB")
    load_extensions(connection)
    attach(connection, lake, read_only=False)
    frozen = load(version, connection, keyless=True)
    make_writer_row(connection)
    connection.close()
    with open_writer(lake, 30):
        pass
    require_every_row(lake, frozen)
    publish(lake, 30, audit_record("new"), measure_runs(), [expectation()], staged)
    with open_reader(lake, 30) as connection:
        assert connection.execute("SELECT count(*) FROM latest_audit").fetchall() == [(2,)]
