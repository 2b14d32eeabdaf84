"""Maintenance: old detail rows and files go, everything else stays, and the room comes back."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from own_processes import Start
from plausible import NOON, audit_record, expectation, measure_runs, plausible_rows, stage_all
from ready_warehouses import put_audit
from warehouse_rows import every_table

from embaudit.steps.staging.files import delete_leftovers, find_leftovers
from embaudit.system.settings import Lake, Warehouse
from embaudit.warehouse import prune as vacuums
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.prune import DETAIL_TABLES, Keep, prune, vacuum
from embaudit.warehouse.publish import publish
from embaudit.warehouse.write import StagedTable
from embaudit.words.errors import StorageError, UsageError, WarehouseError

COUNTS = {name: len(rows) for name, rows in plausible_rows().items()}
AUDITS = (("old", "c1", 0), ("mid", "c1", 10), ("new", "c1", 20), ("only", "c2", 5))
DETAIL = {name: COUNTS[name] for name in DETAIL_TABLES}


def fill(place: Warehouse, folder: Path) -> None:
    """c1 audited at 12:00 (old), 12:10 (mid) and 12:20 (new), c2 at 12:05 (only); a failed one of c1 is the newest."""
    for audit_id, checkpoint, minutes in AUDITS:
        staged = stage_all(folder / audit_id, plausible_rows(checkpoint, f"model/{checkpoint}"))
        record = audit_record(audit_id, checkpoint, minutes=minutes)
        publish(place, 5, record, measure_runs(), [expectation()], staged)
    publish(place, 5, audit_record("bad", "c1", "failed", "checks", minutes=30), [], [expectation()], [])


@pytest.fixture(scope="module")
def filled_once(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in a file, put there without publishing."""
    path = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("filled")))
    for audit_id, checkpoint, minutes in AUDITS:
        rows = plausible_rows(checkpoint, f"model/{checkpoint}")
        put_audit(path, audit_record(audit_id, checkpoint, minutes=minutes), rows, measure_runs(), [expectation()])
    put_audit(path, audit_record("bad", "c1", "failed", "checks", minutes=30), {}, [], [expectation()])
    return path


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled_once, tmp_path / "filled.duckdb"))


def rows(place: Warehouse, sql: str) -> list[tuple]:
    with open_reader(place, 10) as connection:
        return connection.execute(sql).fetchall()


def with_details(place: Warehouse) -> set[str]:
    """The audits that have their detail rows: all of them, in every table."""
    with open_reader(place, 10) as connection:
        found = [
            dict(connection.execute(f"SELECT audit_id, count(*) FROM {name} GROUP BY 1").fetchall()) for name in DETAIL
        ]
    for name, counts in zip(DETAIL, found, strict=True):
        assert set(counts.values()) <= {DETAIL[name]}, name
        assert counts.keys() == found[0].keys(), name
    return set(found[0])


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (Keep(audits=1), {"new", "only"}),
        pytest.param(Keep(audits=2), {"mid", "new", "only"}, marks=pytest.mark.slow),
        pytest.param(Keep(audits=0), set(), marks=pytest.mark.slow),
        pytest.param(Keep(days=1), {"mid", "new"}, marks=pytest.mark.slow),
        # Either rule keeps an audit.
        (Keep(days=1, audits=1), {"mid", "new", "only"}),
        pytest.param(Keep(days=2), {"old", "mid", "new", "only"}, marks=pytest.mark.slow),
    ],
)
def test_the_rules_say_which_audits_keep_their_rows(filled: Path, keep: Keep, left: set[str]) -> None:
    now = NOON + timedelta(days=1, minutes=7)
    planned = prune(filled, 0, keep, dry_run=True, now=now)
    assert with_details(filled) == {"old", "mid", "new", "only"}
    assert prune(filled, 0, keep, now=now) == planned
    assert with_details(filled) == left
    assert {one.audit_id for one in planned} == {"old", "mid", "new", "only"} - left
    recorded = rows(filled, "SELECT audit_id, table_name, rows, reason FROM pruning ORDER BY ALL")
    assert recorded == sorted((one.audit_id, one.table, one.rows, str(keep)) for one in planned)
    assert prune(filled, 0, keep, now=now) == []


def test_an_older_audit_keeps_its_rows_while_it_has_the_newest_result(filled: Path) -> None:
    only_geometry = {name: plausible_rows("c2", "model/c2")[name] for name in ("checkpoint", "geometry")}
    put_audit(filled, audit_record("later", "c2", minutes=40), only_geometry)
    assert "only" not in {one.audit_id for one in prune(filled, 0, Keep(audits=1), dry_run=True)}


def test_summaries_verdicts_content_and_the_log_stay(filled: Path) -> None:
    def others() -> dict[str, list[tuple]]:
        with open_reader(filled) as connection:
            names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
            names += [
                ("summary_figure",),
                ("sticky_token",),
                ("leaderboard",),
                ("layer_curve",),
                ("audit_predecessor",),
            ]
            return {
                name: connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall()
                for (name,) in names
                if name not in {*DETAIL_TABLES, "pruning"}
            }

    before = others()
    assert sum(row.rows for row in prune(filled, 0, Keep(audits=0))) == 4 * sum(DETAIL.values())
    assert others() == before
    with open_reader(filled) as connection:
        for (view,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall():
            connection.execute(f"SELECT * FROM {view}").fetchall()


def test_a_pruned_audit_is_published_again_every_table(filled: Path, tmp_path: Path) -> None:
    prune(filled, 0, Keep(audits=0))
    again = plausible_rows("c1", "model/c1")
    staged = stage_all(tmp_path / "again", {name: again[name] for name in DETAIL})
    publish(filled, 0, audit_record("old", "c1"), measure_runs(), [expectation()], staged)
    assert with_details(filled) == {"old"}


def test_no_rule_is_no_order(filled: Path) -> None:
    with pytest.raises(UsageError, match="not specified"):
        prune(filled, 0, Keep())


def test_a_missing_warehouse_is_not_made(no_warehouse: Path) -> None:
    for work in (lambda: prune(no_warehouse, 0, Keep(audits=1)), lambda: vacuum(no_warehouse, 0)):
        with pytest.raises(WarehouseError, match="There is no warehouse"):
            work()
    assert not no_warehouse.exists()


# ---- room ----


@pytest.fixture(scope="module")
def large_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two audits with 200 000 pairs each, in blocks of the usual size: megabytes that can come back."""
    warehouse = tmp_path_factory.mktemp("large") / "warehouse.duckdb"
    for audit_id, minutes in (("old", 0), ("new", 10)):
        put_audit(warehouse, audit_record(audit_id, minutes=minutes), plausible_rows(), measure_runs(), [expectation()])
        with open_writer(warehouse, 0) as connection:
            connection.execute(
                "INSERT INTO socm_pair SELECT ?, 'wikipedia', i, i + 1, i * 7919 % 100003 / 1e5, 0.5, 0.5 "
                "FROM range(200_000) AS r(i)",
                [audit_id],
            )
    return warehouse


@pytest.fixture
def large(large_once: Path, warehouse: Path) -> Path:
    return Path(shutil.copy(large_once, warehouse))


@pytest.mark.slow
def test_a_file_shrinks_and_holds_the_same(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuums, "SETTLING_SECONDS", 0.0)
    prune(large, 0, Keep(audits=1))
    before = every_table(large)
    done = vacuum(large, 0)
    assert done.freed > 2_000_000
    assert large.stat().st_size == done.after
    assert every_table(large) == before
    assert [path.name for path in large.parent.iterdir()] == [large.name]
    # Keys are there: the next publication replaces.
    with open_writer(large, 0) as connection, pytest.raises(duckdb.ConstraintException):
        connection.execute("INSERT INTO sticky_summary SELECT * FROM sticky_summary LIMIT 1")
    assert vacuum(large, 0).freed == 0


@pytest.mark.slow
def test_a_link_to_a_file_stays_a_link(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuums, "SETTLING_SECONDS", 0.0)
    link = large.with_name("link.duckdb")
    link.symlink_to(large)
    prune(link, 0, Keep(audits=0))
    assert vacuum(link, 0).freed > 0
    assert link.is_symlink()
    assert link.stat().st_size == large.stat().st_size


@pytest.mark.slow
def test_without_room_for_a_copy_the_file_stays(large: Path, small_disk: Callable, tmp_path: Path) -> None:
    prune(large, 0, Keep(audits=1))
    with open_writer(large, 0) as connection:
        connection.execute("CHECKPOINT")
    disk = small_disk(2 + large.stat().st_size // 1024**2)
    path = disk.folder / "warehouse.duckdb"
    path.write_bytes(large.read_bytes())
    before = every_table(path)
    with pytest.raises(StorageError, match="cannot be rewritten"):
        vacuum(path, 0)
    assert every_table(path) == before
    assert [file.name for file in disk.folder.iterdir()] == [path.name]


PUBLISHER = """
import sys
from pathlib import Path
from plausible import audit_record, expectation, measure_runs
from embaudit.warehouse.publish import publish
from embaudit.warehouse.write import StagedTable
warehouse, staging, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
staged = [StagedTable(path.name.rsplit("-", 1)[0], (str(path),)) for path in sorted(staging.glob("*.parquet"))]
print("publishing", flush=True)
for number in range(6):
    publish(warehouse, 120, audit_record(f"{name}-{number}"), measure_runs(), [expectation()], staged)
print("done", flush=True)
"""


@pytest.mark.slow
def test_what_is_published_while_a_file_is_written_anew_is_not_lost(
    large: Path, tmp_path: Path, process: Start, staged: list[StagedTable]
) -> None:
    assert staged
    publishers = [process(PUBLISHER, large, tmp_path / "staging", name) for name in ("a", "b")]
    for publisher in publishers:
        publisher.says("publishing")
    rewritten = 0
    for number in range(4):
        with open_writer(large, 120) as connection:
            # Something to free each time.
            connection.execute(f"CREATE TABLE ballast_{number} AS SELECT random() AS x FROM range(2_000_000)")
            connection.execute(f"CHECKPOINT; DROP TABLE ballast_{number}")
        rewritten += vacuum(large, 120).freed > 0
    for publisher in publishers:
        output, errors = publisher.communicate(timeout=300)
        assert output == "done\n", errors[-2000:]
    # Room that a publication took meanwhile is none to give back.
    assert rewritten >= 1
    audits = {"old", "new", *(f"{name}-{number}" for name in "ab" for number in range(6))}
    assert dict(rows(large, "SELECT audit_id, status FROM audit")) == dict.fromkeys(audits, "published")
    assert {name for (name,) in rows(large, "SELECT DISTINCT audit_id FROM socm_summary")} == audits


@pytest.mark.slow
def test_a_lake_is_pruned_and_gives_room_back(lake: Lake, tmp_path: Path) -> None:
    fill(lake, tmp_path)
    with open_writer(lake, 5) as connection:
        connection.execute(
            "INSERT INTO socm_pair SELECT 'old', 'wikipedia', i, i + 1, random(), random(), random() "
            "FROM range(200_000) AS r(i)"
        )
    with open_reader(lake) as connection:
        views = {"summary_figure", "sticky_token", "leaderboard"}
        before = {view: connection.execute(f"SELECT * FROM {view} ORDER BY ALL").fetchall() for view in views}
    # What a killed writer wrote and never committed.
    orphan = lake.data_path / "main" / "token" / "ducklake-00000000-0000-7000-8000-000000000000.parquet"
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(Path(stage_all(tmp_path / "orphan", plausible_rows())[0].paths[0]).read_bytes())
    os.utime(orphan, (time.time() - 3 * 86_400,) * 2)
    assert len(prune(lake, 5, Keep(audits=1))) == 2 * len(DETAIL)
    assert with_details(lake) == {"new", "only"}
    assert vacuum(lake, 5, snapshot_days=0).freed > 2_000_000
    assert not orphan.exists()
    assert with_details(lake) == {"new", "only"}
    with open_reader(lake) as connection:
        for view, found in before.items():
            after = connection.execute(f"SELECT * FROM {view} ORDER BY ALL").fetchall()
            assert [tuple(map(repr, row)) for row in after] == [tuple(map(repr, row)) for row in found], view
    publish(lake, 5, audit_record("old", "c1"), measure_runs(), [expectation()], stage_all(tmp_path, plausible_rows()))
    assert with_details(lake) == {"old", "new", "only"}


# ---- files ----


def aged(path: Path, days: float, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (time.time() - days * 86_400,) * 2)
    return path


def test_old_staged_files_and_those_of_killed_processes_go(tmp_path: Path) -> None:
    staging, warehouse = tmp_path / "staging", tmp_path / "warehouse.duckdb"
    old = aged(staging / "socm" / "k1" / "socm_pair-00000.parquet", 40)
    young = aged(staging / "socm" / "k2" / "socm_pair-00000.parquet", 20)
    killed = aged(staging / "socm" / "k2" / ".socm_pair-00001.parquet.17.abcd", 2)
    writing = aged(staging / "socm" / "k2" / ".socm_pair-00002.parquet.17.abcd", 0.1)
    laid = aged(tmp_path / ".warehouse.duckdb.abcd" / "warehouse.duckdb", 2)
    os.utime(laid.parent, (time.time() - 2 * 86_400,) * 2)
    mine = aged(tmp_path / "mine.parquet", 400)
    left = find_leftovers(str(staging), warehouse, 30)
    assert set(left.staged) == {old}
    assert set(left.partial) == {killed, laid}
    assert left.bytes == sum(path.stat().st_size for path in (old, killed, laid))
    delete_leftovers(left)
    assert all(path.exists() for path in (young, writing, mine))
    assert not any(path.exists() for path in (old, old.parent, killed, laid, laid.parent))
    assert find_leftovers(str(staging), warehouse, 30).files == 0


def test_publishing_makes_staged_files_young(warehouse: Path, staged: list[StagedTable]) -> None:
    path = Path(staged[0].paths[0])
    os.utime(path, (0, 0))
    publish(warehouse, 0, audit_record(), measure_runs(), [expectation()], staged[:1])
    assert time.time() - path.stat().st_mtime < 60


def test_files_of_a_running_audit_are_safe(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="for at least one day"):
        find_leftovers(str(tmp_path), None, 0.5)


def test_an_object_store_is_left_alone() -> None:
    assert find_leftovers("memory://bucket", None, 30).files == 0
