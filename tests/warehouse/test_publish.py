"""Publishing: the log in a transaction of its own, the tables in one more, all or nothing, and never twice."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all
from ready_warehouses import put_audit
from some_rows import mostly_slow
from warehouse_rows import FEW, rows

from embaudit.steps.staging.stage import write_rows
from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.expectations.check import check_tables
from embaudit.warehouse.publish import publish, publish_content
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable, write_table
from embaudit.words.errors import StorageError, WarehouseError

AUDIT_TABLES = [name for name, table in TABLES.items() if table.scope == "audit"]


def contents(path: Path, audit_id: str | None = None) -> dict[str, list[tuple]]:
    """Every published table's rows; of one audit, or of all."""
    found = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for name, table in TABLES.items():
            where = f"WHERE audit_id = '{audit_id}'" if audit_id and table.scope == "audit" else ""
            found[name] = connection.execute(f"SELECT * FROM {name} {where} ORDER BY ALL").fetchall()
    return found


def status(path: Path, audit_id: str = "a1") -> tuple:
    return rows(path, "SELECT status, reason FROM audit WHERE audit_id = ?", audit_id)[0]


def test_every_staged_row_arrives(published_once: Path) -> None:
    expected = {name: len(table_rows) for name, table_rows in plausible_rows().items()}
    assert {name: len(found) for name, found in contents(published_once).items()} == expected
    assert status(published_once) == ("published", None)
    assert rows(published_once, "SELECT measure, encodes FROM measure_run ORDER BY 1") == [
        (run.measure, run.encodes) for run in sorted(measure_runs(), key=lambda run: run.measure)
    ]


def test_the_log_holds_settings_and_checks_as_json(warehouse: Path, few: list[StagedTable]) -> None:
    failed = replace(
        expectation(success=False, severity="warning"),
        kwargs={"value_set": [True], "column": "x", "min_value": 0.5},
        examples=[{"token_id": float("nan"), "corpus": "wikipedia"}, {"token_id": 3}],
    )
    publish(warehouse, 0, audit_record(), measure_runs(), [failed], few)
    ((kwargs, examples, settings),) = rows(
        warehouse, "SELECT kwargs, examples, settings FROM expectation_result JOIN audit USING (audit_id)"
    )
    assert json.loads(kwargs) == failed.kwargs
    assert json.loads(examples) == [{"token_id": None, "corpus": "wikipedia"}, {"token_id": 3}]
    assert "NaN" not in examples
    assert json.loads(settings) == {"sticky": {"copies": 8}}


@pytest.mark.slow
def test_all_real_expectations_are_on_record(warehouse: Path, staged: list[StagedTable]) -> None:
    checks = check_tables(staged, {})
    assert len(checks) > 100
    publish(warehouse, 0, audit_record(), measure_runs(), checks, staged)
    recorded = rows(
        warehouse, "SELECT table_name, shard, expectation, column_name, kwargs, success FROM expectation_result"
    )
    assert len(recorded) == len(checks)
    assert {(t, s, e, c, json.dumps(json.loads(k), sort_keys=True), ok) for t, s, e, c, k, ok in recorded} == {
        (c.table_name, c.shard, c.expectation, c.column_name, json.dumps(c.kwargs, sort_keys=True), c.success)
        for c in checks
    }


def test_a_rerun_doubles_nothing(published: Path, staged: list[StagedTable]) -> None:
    expected = {name: len(table_rows) for name, table_rows in plausible_rows().items()}
    checks = [expectation(), expectation(shard=1)]
    assert publish(published, 0, audit_record(), measure_runs(), checks, staged) == expected
    assert {name: len(found) for name, found in contents(published).items()} == expected
    for table, count in (("audit", 1), ("measure_run", len(measure_runs())), ("expectation_result", 2)):
        assert rows(published, f"SELECT count(*) FROM {table}") == [(count,)]


@pytest.mark.slow
def test_reruns_do_not_let_the_file_grow(warehouse: Path, tmp_path: Path) -> None:
    one = plausible_rows()
    many = {
        "sticky_score": [{**one["sticky_score"][0], "token_id": i} for i in range(30_000)],
        "socm_pair": [{**one["socm_pair"][0], "second": i + 1} for i in range(130_000)],
    }
    staged = stage_all(tmp_path / "many", many)
    checks = [expectation(shard=shard) for shard in range(50)]
    sizes = []
    for _ in range(6):
        publish(warehouse, 0, audit_record(), measure_runs(), checks, staged)
        sizes.append(warehouse.stat().st_size)
    # The rows that a transaction replaces are given back once it is written: twice the room, and no more.
    assert max(sizes[2:]) <= 2 * sizes[0] + 1_000_000, sizes
    # From then on it grows by less than one block of 256 KiB.
    assert sizes[5] < sizes[3] + 2**18, sizes


def test_a_rerun_with_fewer_rows_leaves_none_of_the_old_ones(published: Path, tmp_path: Path) -> None:
    fewer = stage_all(tmp_path / "fewer", {name: found[:1] for name, found in plausible_rows().items()})
    publish(published, 0, audit_record(), [], [], fewer)
    after = contents(published)
    assert {name: len(after[name]) for name in AUDIT_TABLES} == dict.fromkeys(AUDIT_TABLES, 1)
    # Nor of a measure that is gone.
    publish(published, 0, audit_record(), [], [], [table for table in fewer if table.table == "socm_summary"])
    assert {name for name, found in contents(published).items() if found and name in AUDIT_TABLES} == {"socm_summary"}


def test_another_audits_rows_are_untouched(published: Path, tmp_path: Path) -> None:
    before = contents(published, "a1")
    other = stage_all(tmp_path / "other", plausible_rows("c2", "other/model", shift=0.01))
    for staged in (other, [table for table in other if table.table in FEW]):
        publish(published, 0, audit_record("a2", "c2"), measure_runs(), [expectation()], staged)
    after = contents(published, "a1")
    assert {name: after[name] for name in AUDIT_TABLES} == {name: before[name] for name in AUDIT_TABLES}
    assert len(rows(published, "SELECT * FROM socm_pair")) == 12
    assert len(contents(published)["token"]) == 16


@pytest.mark.slow
def test_the_audits_that_tests_put_there_are_like_published_ones(published: Path, tmp_path: Path) -> None:
    """``put_audit`` stands for a publication where another audit is merely needed."""
    copy = Path(shutil.copy(published, tmp_path / "copy.duckdb"))
    record, rows_of_it = audit_record("a2", "c2", minutes=5), plausible_rows("c2", "owner/other", shift=0.01)
    publish(published, 0, record, measure_runs(), [expectation()], stage_all(tmp_path / "other", rows_of_it))
    put_audit(copy, record, rows_of_it, measure_runs(), [expectation()])
    assert contents(copy) == contents(published)
    for log in ("audit", "measure_run", "expectation_result"):
        found = f"SELECT * FROM {log} ORDER BY ALL"
        assert rows(copy, found) == rows(published, found)


def test_a_failed_audit_publishes_nothing_and_says_why(warehouse: Path, few: list[StagedTable]) -> None:
    failed = audit_record(status="failed", reason="no pair lies below u")
    assert publish(warehouse, 0, failed, measure_runs(), [expectation(success=False)], few) == {}
    assert status(warehouse) == ("failed", "no pair lies below u")
    assert all(not found for found in contents(warehouse).values())
    assert rows(warehouse, "SELECT success FROM expectation_result") == [(False,)]


def test_a_failed_rerun_leaves_the_published_audit_published(published: Path, few: list[StagedTable]) -> None:
    before = contents(published)
    publish(published, 0, audit_record(status="failed", reason="disk full", minutes=60), [], [], [])
    assert contents(published) == before
    assert status(published) == ("published", "a later run of this audit ended as failed: disk full")
    assert rows(published, "SELECT minute(finished) FROM audit") == [(0,)]
    publish(published, 0, audit_record(minutes=90), measure_runs(), [expectation()], few)
    assert status(published) == ("published", None)


def test_a_check_that_passes_now_leaves_no_failure_on_record(warehouse: Path, few: list[StagedTable]) -> None:
    first = [expectation(success=False), expectation(shard=7, success=False)]
    publish(warehouse, 0, audit_record(status="failed", reason="checks"), [], first, [])
    publish(warehouse, 0, audit_record(), [], [expectation()], few)
    assert rows(warehouse, "SELECT shard, success FROM expectation_result") == [(0, True)]


def test_a_failing_data_transaction_leaves_tables_and_says_checked(
    published: Path, tmp_path: Path, few: list[StagedTable]
) -> None:
    before = contents(published)
    broken = [table for table in few if table.table != "socm_summary"]
    write_rows(tmp_path / "wrong.parquet", [{"corpus": "wikipedia", "surprise": 1}])
    broken.append(StagedTable("socm_summary", (str(tmp_path / "wrong.parquet"),)))
    with pytest.raises(WarehouseError, match=r"socm_summary does not accept its staged rows.*surprise") as caught:
        publish(published, 0, audit_record("a2"), measure_runs(), [expectation()], broken)
    assert "wrong.parquet" in caught.value.happened
    assert "are unchanged" in caught.value.kept
    assert contents(published) == before
    assert status(published, "a2") == ("checked", None)
    assert rows(published, "SELECT count(*) FROM expectation_result WHERE audit_id = 'a2'") == [(1,)]
    publish(published, 0, audit_record("a2"), measure_runs(), [expectation()], few)
    assert status(published, "a2") == ("published", None)


def test_a_failing_rerun_of_a_published_audit_keeps_its_rows(
    published: Path, tmp_path: Path, few: list[StagedTable]
) -> None:
    before = contents(published)
    write_rows(tmp_path / "wrong.parquet", [{"surprise": 1}])
    with pytest.raises(WarehouseError):
        publish(published, 0, audit_record(), [], [], [*few[1:], StagedTable("token", (f"{tmp_path}/wrong.parquet",))])
    assert contents(published) == before
    assert status(published)[0] == "published"


def test_texts_and_corpora_are_written_once(published: Path, tmp_path: Path, staged: list[StagedTable]) -> None:
    kept = ("corpus", "text", "text_pair")
    before = {name: rows(published, f"SELECT rowid, * FROM {name} ORDER BY ALL") for name in kept}
    again = plausible_rows("c2")
    again["corpus"][0]["source"] = "the same texts from a file"
    again["text"][0]["text"] = "would be another text under the same id"
    other = stage_all(tmp_path / "again", {name: again[name] for name in ("checkpoint", *kept)})
    publish(published, 0, audit_record("a2", "c2"), [], [], other)
    publish_content(published, 0, [table for table in staged if table.table in kept])
    assert {name: rows(published, f"SELECT rowid, * FROM {name} ORDER BY ALL") for name in kept} == before


def test_two_audits_may_bring_different_rows_of_one_corpus(published: Path, tmp_path: Path) -> None:
    before = rows(published, "FROM text ORDER BY ALL")
    (row,) = [row for row in plausible_rows()["text"] if row["position"] == 0][:1]
    more = [{**row, "text": "not what is there"}, {**row, "position": 7_000, "text": "another row"}]
    publish(published, 0, audit_record("a2"), measure_runs(), [], stage_all(tmp_path / "more", {"text": more}))
    added = [one for one in rows(published, "FROM text ORDER BY ALL") if one not in before]
    assert [one[1:3] for one in added] == [(7_000, "another row")]
    assert len(rows(published, "FROM text")) == len(before) + 1


def test_one_content_under_several_names_keeps_the_first(warehouse: Path, tmp_path: Path) -> None:
    """Whichever thread reads its file first."""
    record = plausible_rows()["corpus"][0]
    names = [f"name-{number}" for number in range(8)]
    path_of = {name: stage_all(tmp_path / name, {"corpus": [{**record, "name": name}]})[0].paths[0] for name in names}
    order = random.Random(0)
    with open_writer(warehouse, 0) as connection:
        connection.execute("SET threads = 16")
        for _ in range(50):
            order.shuffle(names)
            write_table(connection, "", StagedTable("corpus", tuple(path_of[name] for name in names)))
            assert connection.execute("SELECT name FROM corpus").fetchall() == [(names[0],)]
            connection.execute("DELETE FROM corpus")


def test_content_of_a_corpus_goes_in_without_an_audit(warehouse: Path, staged: list[StagedTable]) -> None:
    content = [table for table in staged if table.table in ("corpus", "text")]
    assert publish_content(warehouse, 0, content) == {"corpus": 2, "text": 4}
    assert rows(warehouse, "SELECT count(*) FROM audit") == [(0,)]


def test_a_checkpoints_row_is_the_newest(published: Path, tmp_path: Path) -> None:
    row = plausible_rows("c1", "folder/of/the/same/weights")["checkpoint"]
    renamed = stage_all(tmp_path / "renamed", {"checkpoint": row})
    publish(published, 0, audit_record("a2"), [], [], renamed)
    assert rows(published, "SELECT source FROM checkpoint") == [("folder/of/the/same/weights",)]


def test_shards_are_joined(warehouse: Path, tmp_path: Path) -> None:
    pairs = plausible_rows()["socm_pair"]
    paths = [stage_all(tmp_path / str(shard), {"socm_pair": pairs[shard::3]})[0].paths[0] for shard in range(3)]
    assert publish(warehouse, 0, audit_record(), [], [], [StagedTable("socm_pair", tuple(paths))]) == {"socm_pair": 6}
    assert len(rows(warehouse, "SELECT DISTINCT first, second FROM socm_pair")) == 6


@pytest.mark.parametrize(
    "folder", mostly_slow(["a[1]", "team=nlp/audit_id=x", "a*b", "who?", "it's ö 'quoted'", "%s $1"], 2)
)
def test_odd_folder_names_are_only_names(warehouse: Path, tmp_path: Path, folder: str) -> None:
    def two_tables(checkpoint: str) -> dict[str, list[dict[str, Any]]]:
        return {name: plausible_rows(checkpoint)[name] for name in ("checkpoint", "socm_pair")}

    for sibling in ("axb", "whom", "a1"):
        stage_all(tmp_path / sibling, two_tables("c9"))
    staged = stage_all(tmp_path / folder, two_tables("c1"))
    assert publish(warehouse, 0, audit_record(), [], [], staged)["socm_pair"] == 6
    assert rows(warehouse, "SELECT checkpoint_id FROM checkpoint") == [("c1",)]
    assert rows(warehouse, "SELECT count(*) FROM socm_pair") == [(6,)]


def test_a_missing_staged_file_is_named_before_anything_is_written(no_warehouse: Path, few: list[StagedTable]) -> None:
    Path(next(table.paths[0] for table in few if table.table == "socm_summary")).unlink()
    with pytest.raises(StorageError, match=r"socm_summary-00000\.parquet is missing"):
        publish(no_warehouse, 0, audit_record(), [], [], few)
    assert not no_warehouse.exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "text"])
def test_a_corrupt_staged_file_is_named_and_nothing_is_published(
    no_warehouse: Path, few: list[StagedTable], damage: str
) -> None:
    path = Path(next(table.paths[0] for table in few if table.table == "token"))
    path.write_bytes({"empty": b"", "cut": path.read_bytes()[:-20], "text": b"no parquet " * 50}[damage])
    with pytest.raises(StorageError, match=r"token-00000\.parquet cannot be read") as caught:
        publish(no_warehouse, 0, audit_record(), [], [], few)
    assert "Delete that file" in caught.value.next_step
    assert not no_warehouse.exists()


def test_damage_inside_a_staged_file_is_named_and_nothing_is_published(
    published: Path, tmp_path: Path, few: list[StagedTable]
) -> None:
    """The footer is whole, so that only DuckDB's own reading of the rows finds it."""
    before = contents(published)
    path = Path(next(table.paths[0] for table in few if table.table == "socm_pair"))
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)
    with pytest.raises(WarehouseError, match=r"socm_pair-00000\.parquet") as caught:
        publish(published, 0, audit_record("a2"), [], [], few)
    assert "Delete those files" in caught.value.next_step
    assert contents(published) == before
    assert status(published, "a2")[0] == "checked"


def test_a_null_where_the_warehouse_has_none_names_the_table(warehouse: Path, tmp_path: Path) -> None:
    bad = plausible_rows()["socm_summary"]
    bad[0]["socm_mean"] = None
    with pytest.raises(WarehouseError, match=r"socm_summary does not accept .*socm_mean"):
        publish(warehouse, 0, audit_record(), [], [], stage_all(tmp_path, {"socm_summary": bad}))


def test_columns_go_by_name_not_by_place(warehouse: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit_corpus.parquet"
    write_rows(path, [{"corpus_id": "w1", "name": "wikipedia"}])
    publish(warehouse, 0, audit_record(), [], [], [StagedTable("audit_corpus", (str(path),))])
    assert rows(warehouse, "SELECT * FROM audit_corpus") == [("a1", "wikipedia", "w1")]
