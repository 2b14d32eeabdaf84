"""Copies for dashboards: complete, of one moment, replaced in one step, and never in anybody's way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from own_processes import Start
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all
from ready_warehouses import put_audit
from warehouse_rows import every_table

from embaudit.warehouse import export as exporting
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.export import export
from embaudit.warehouse.publish import publish
from embaudit.warehouse.query import named_queries, run_query
from embaudit.warehouse.tables import TABLES
from embaudit.words.errors import StorageError, UsageError, WarehouseError

COUNTS = {name: len(rows) for name, rows in plausible_rows().items()}


@pytest.mark.slow
def test_a_copy_is_a_whole_warehouse_that_nobody_writes(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "dashboards" / "snapshot.duckdb"
    made = export(published, copy, 0)
    assert made.path == copy
    assert made.bytes == copy.stat().st_size
    assert {name: made.rows[name] for name in COUNTS} == COUNTS
    assert every_table(copy) == every_table(published)
    assert copy.stat().st_mode & 0o222 == 0
    assert sorted(path.name for path in copy.parent.iterdir()) == [".snapshot.duckdb.lock", "snapshot.duckdb"]
    # It is a warehouse like any other to whoever asks.
    for name in ("leaderboard", "worst-tokens", "audits"):
        assert run_query(copy, name).rows == run_query(published, name).rows


@pytest.mark.slow
def test_what_is_left_out_is_there_and_empty(published: Path, tmp_path: Path) -> None:
    made = export(published, tmp_path / "small.duckdb", 0, with_bulk=False)
    assert "socm_pair" not in made.rows
    found = every_table(tmp_path / "small.duckdb")
    assert found["socm_pair"] == []
    assert len(found["socm_summary"]) == COUNTS["socm_summary"]
    with open_reader(tmp_path / "small.duckdb") as connection:
        for name in ("socm-worst-pairs", "worst-tokens", "leaderboard"):
            connection.execute(named_queries()[name].sql).fetchall()
    export(published, tmp_path / "small.duckdb", 0, tables=["audit", "checkpoint"])
    found = every_table(tmp_path / "small.duckdb")
    assert {name for name, rows in found.items() if rows} == {"audit", "checkpoint", "schema_migration"}


@pytest.mark.slow
def test_a_folder_has_a_file_a_table_and_leads_to_the_newest(published: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parquet"
    made = [export(published, folder, 0, keep=2, tables=tables) for tables in (["audit"], ["audit"], None)]
    assert sorted(path.name for path in folder.iterdir()) == ["current", made[1].path.name, made[2].path.name]
    assert (folder / "current").resolve() == made[2].path
    for name in (*COUNTS, "audit", "schema_migration", "published_figure"):
        parquet = str(folder / "current" / f"{name}.parquet")
        with open_reader(published) as connection:
            expected = connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall()
        assert duckdb.execute("FROM read_parquet(?) ORDER BY ALL", [parquet]).fetchall() == expected, name


@pytest.mark.parametrize(
    ("prepare", "options", "why"),
    [
        (lambda path: None, {"tables": ["tokens"]}, "no table 'tokens'"),
        (lambda path: path.write_text("mine"), {}, "is not an export"),
        (lambda path: path.mkdir(), {}, "is a folder"),
        (lambda path: path.write_text("mine"), {"form": "parquet"}, "is a file"),
        (
            lambda path: (path.mkdir(), (path / "thesis.txt").write_text("mine")),
            {"form": "parquet"},
            "contains something other than",
        ),
    ],
)
def test_nothing_else_is_replaced(published: Path, tmp_path: Path, prepare: Callable, options: dict, why: str) -> None:
    place = tmp_path / "place.duckdb"
    prepare(place)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=why):
        export(published, place, 0, **options)
    assert [path for path in sorted(tmp_path.rglob("*")) if path.suffix != ".lock"] == before
    if place.is_file():
        assert place.read_text() == "mine"


def test_the_warehouse_does_not_replace_itself(published: Path) -> None:
    with pytest.raises(UsageError, match="the warehouse itself"):
        export(published, published, 0)


@pytest.mark.slow
def test_what_a_writer_of_the_old_copy_left_is_not_read_into_the_new_one(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.duckdb"
    copy.with_name("copy.duckdb.wal").write_bytes(b"of another file")
    export(published, copy, 0, tables=["audit"])
    assert every_table(copy)["audit"]


@pytest.mark.slow
def test_a_reader_keeps_the_copy_that_it_has_open(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.duckdb"
    export(published, copy, 0, tables=["audit"])
    with duckdb.connect(str(copy), read_only=True) as dashboard:
        # The writer waits for no dashboard: its lock is free at once.
        put_audit(published, audit_record("a2", "c2"), {})
        export(published, copy, 0, tables=["audit"])
        assert dashboard.execute("SELECT count(*) FROM audit").fetchall() == [(1,)]
    assert len(every_table(copy)["audit"]) == 2


def test_a_full_disk_leaves_the_earlier_copy(published: Path, small_disk: Callable) -> None:
    disk = small_disk(2)
    with pytest.raises(StorageError, match="Cannot write the copy") as caught:
        export(published, disk.folder / "copy.duckdb", 0)
    assert "The warehouse and any earlier copy are unchanged" in caught.value.kept
    assert [path.name for path in disk.folder.iterdir()] == [".copy.duckdb.lock"]


def test_exports_to_one_place_queue(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.duckdb"
    with exporting.one_at_a_time(copy, 0), pytest.raises(StorageError, match="Another process has been exporting"):
        export(published, copy, 0.2)
    export(published, copy, 0, tables=["audit"])


def test_a_warehouse_that_is_being_written_is_waited_for(published: Path, tmp_path: Path) -> None:
    with open_writer(published, 0), pytest.raises(WarehouseError, match="open for writing"):
        export(published, tmp_path / "copy.duckdb", 0.2)


@pytest.mark.slow
def test_what_a_killed_export_left_goes_with_the_next(published: Path, tmp_path: Path) -> None:
    old, young = tmp_path / ".copy.duckdb.aaaa.partial", tmp_path / ".copy.duckdb.bbbb.partial"
    for folder in (old, young):
        folder.mkdir()
    os.utime(old, (time.time() - 7 * 3600,) * 2)
    export(published, tmp_path / "copy.duckdb", 0, tables=["audit"])
    assert not old.exists()
    assert young.exists()


def test_so_does_what_a_killed_export_left_among_the_versions(published: Path, tmp_path: Path) -> None:
    left = tmp_path / "copies" / f".{exporting.VERSION_PREFIX}20260101T000000.000000Z.aaaa.partial"
    left.mkdir(parents=True)
    os.utime(left, (time.time() - 7 * 3600,) * 2)
    export(published, tmp_path / "copies", 0, tables=["audit"])
    assert not left.exists()


POLL = """
import sys, time
from pathlib import Path
import duckdb
from embaudit.warehouse.tables import TABLES
copy, stop, parquet = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "parquet"
names = [table.name for table in TABLES.values() if table.scope == "audit"]
seen, reads = set(), 0
print("polling", flush=True)
while not stop.exists():
    if parquet:
        folder = Path(copy, "current").resolve()
        connection = duckdb.connect()
        source = {name: f"'{folder}/{name}.parquet'" for name in [*names, "audit"]}
    else:
        connection = duckdb.connect(copy, read_only=True)
        source = {name: name for name in [*names, "audit"]}
    audits = {a for (a,) in connection.execute(f"SELECT audit_id FROM {source['audit']}").fetchall()}
    for name in names:
        found = dict(connection.execute(f"SELECT audit_id, count(*) FROM {source[name]} GROUP BY 1").fetchall())
        assert not found or (set(found) == audits and len(set(found.values())) == 1), (name, found, audits)
    connection.close()
    seen.add(len(audits))
    reads += 1
print(reads, sorted(seen), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["duckdb", "parquet"])
def test_whoever_polls_a_snapshot_meets_no_error_and_no_half_state(
    published: Path, tmp_path: Path, process: Start, form: str
) -> None:
    copy = tmp_path / ("snapshot.duckdb" if form == "duckdb" else "snapshot")
    stop = tmp_path / "stop"
    export(published, copy, 0)
    pollers = [process(POLL, copy, stop, form) for _ in range(2)]
    for poller in pollers:
        poller.says("polling")
    for number in range(2, 10):
        other = stage_all(tmp_path / str(number), plausible_rows(f"c{number}"))
        # No waiting at all: a poller that stood in the writer's way would be an error.
        publish(published, 0, audit_record(f"a{number}", f"c{number}"), measure_runs(), [expectation()], other)
        export(published, copy, 0, keep=50)
    stop.touch()
    for poller in pollers:
        output, errors = poller.communicate(timeout=120)
        assert poller.returncode == 0, errors[-2000:]
        reads, seen = output.split(" ", 1)
        assert int(reads) > 3
        assert len(eval(seen)) > 1, "the poller saw one state only: the test proves nothing"
    assert {name for name in TABLES if name in COUNTS} == set(COUNTS)
