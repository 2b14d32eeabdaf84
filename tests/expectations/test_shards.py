"""Staged tables in several files: shard by shard, and what only shows in all of them together."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from broken_rows import check, failures, good
from plausible import SCHEMAS, plausible_rows, stage_all
from plausible_socm import TRACES, socm_pairs
from some_rows import mostly_slow

from embaudit.steps.staging.stage import write_columns
from embaudit.warehouse.expectations.check import ALL_SHARDS, check_tables
from embaudit.warehouse.expectations.suites import suite_of
from embaudit.warehouse.publish import ExpectationRow
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable
from embaudit.words.errors import StorageError


@pytest.fixture
def sharded(tmp_path: Path) -> list[StagedTable]:
    """Texts, and their pairs in three shards of two rows."""
    rows = {name: part for name, part in plausible_rows().items() if name in PLAN}
    pairs = rows.pop("socm_pair")
    shards = [stage_all(tmp_path / f"s{i}", {"socm_pair": pairs[2 * i : 2 * i + 2]})[0].paths[0] for i in range(3)]
    return [*stage_all(tmp_path / "rest", rows), StagedTable("socm_pair", tuple(shards))]


def with_pairs(staged: list[StagedTable], *paths: str) -> list[StagedTable]:
    return [*(table for table in staged if table.table != "socm_pair"), StagedTable("socm_pair", paths)]


def pairs_of(staged: list[StagedTable]) -> tuple[str, ...]:
    return next(table.paths for table in staged if table.table == "socm_pair")


PLAN = {"socm_text": 4, "socm_pair": 6}


def identities(results: list[ExpectationRow]) -> list[tuple[object, ...]]:
    """The primary key of expectation_result, which would merge two results that are alike in it."""
    return [
        (r.table_name, r.shard, r.expectation, r.column_name, json.dumps(r.kwargs, sort_keys=True)) for r in results
    ]


def test_a_whole_table_passes_shard_by_shard(sharded: list[StagedTable]) -> None:
    results = check_tables(sharded, {**PLAN, "scan": 12, "validation": 3})
    assert failures(results) == []
    assert not any(row.raised_exception for row in results)
    assert {row.shard for row in results if row.table_name == "socm_pair"} == {ALL_SHARDS, 0, 1, 2}
    assert {row.table_name for row in results} == set(PLAN)
    assert len(set(identities(results))) == len(results)


@pytest.mark.slow
def test_a_whole_audit_passes_shard_by_shard(sharded: list[StagedTable], tmp_path: Path) -> None:
    others = {name: part for name, part in plausible_rows().items() if name not in PLAN}
    plan = {**PLAN, **{name: len(part) for name, part in others.items()}}
    results = check_tables([*stage_all(tmp_path / "others", others), *sharded], plan)
    assert failures(results) == []
    assert not any(row.raised_exception for row in results)
    assert {row.table_name for row in results} == set(TABLES)
    assert len(set(identities(results))) == len(results)


def test_a_missing_shard_shows_in_the_row_count(sharded: list[StagedTable]) -> None:
    one, two, _ = pairs_of(sharded)
    (failed,) = failures(check_tables(with_pairs(sharded, one, two), PLAN))
    assert (failed.shard, failed.observed, failed.kwargs) == (ALL_SHARDS, "4", {"value": 6})
    assert failed.blocks


def test_a_shard_in_anothers_place_shows_in_the_keys(sharded: list[StagedTable], tmp_path: Path) -> None:
    one, two, _ = pairs_of(sharded)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(Path(two).read_bytes())
    (failed,) = failures(check_tables(with_pairs(sharded, one, two, str(copy)), PLAN))
    assert (failed.shard, failed.expectation) == (ALL_SHARDS, "expect_compound_columns_to_be_unique")
    assert failed.unexpected_count == 2
    assert failed.examples[0] == {"corpus": "wikipedia", "first": 0, "second": 3}
    assert failed.blocks


def test_a_broken_row_and_an_empty_shard_are_named_with_their_shards(
    sharded: list[StagedTable], tmp_path: Path
) -> None:
    bad = plausible_rows()["socm_pair"][4:]
    bad[0]["socm"] = 0.9
    path = stage_all(tmp_path / "bad", {"socm_pair": bad})[0].paths[0]
    empty = tmp_path / "empty.parquet"
    write_columns(empty, [], SCHEMAS["socm_pair"])
    failed = failures(check_tables(with_pairs(sharded, *pairs_of(sharded)[:2], path, str(empty)), PLAN))
    assert {row.shard for row in failed} == {2, 3}
    assert all(example["second"] == 3 for row in failed for example in row.examples)
    assert [row.expectation for row in failed if row.shard == 3] == ["expect_table_row_count_to_be_between"]


def test_a_planned_table_that_nobody_staged_fails(sharded: list[StagedTable]) -> None:
    staged = [table for table in sharded if table.table != "socm_pair"]
    (failed,) = failures(check_tables(staged, PLAN))
    assert (failed.table_name, failed.observed, failed.blocks) == ("socm_pair", "0", True)


def test_pairs_without_their_texts_fail(sharded: list[StagedTable], tmp_path: Path) -> None:
    listed = plausible_rows()["socm_listed_pair"]
    staged = [*sharded[1:], *stage_all(tmp_path / "listed", {"socm_listed_pair": listed})]
    failed = failures(check_tables(staged, {}))
    assert {(row.table_name, row.column_name) for row in failed} == {
        ("socm_pair", "d_sigma_lower_bound"),
        ("socm_listed_pair", "d_sigma_lower_bound"),
    }


def test_two_corpora_have_bounds_of_their_own(tmp_path: Path) -> None:
    rows = plausible_rows()
    scaled = {"corpus": "msmarco", "exceeds_trace_bound": True}
    other = [{**row, **scaled, "trace_sigma": row["trace_sigma"] * 9} for row in rows["socm_text"]]
    texts = [
        stage_all(tmp_path / f"t{i}", {"socm_text": part})[0].paths[0]
        for i, part in enumerate((rows["socm_text"], other))
    ]
    pairs = rows["socm_pair"] + socm_pairs("msmarco", [trace * 9 for trace in TRACES])
    staged = [StagedTable("socm_text", tuple(texts)), *stage_all(tmp_path / "p", {"socm_pair": pairs})]
    assert failures(check_tables(staged, {"socm_text": 8, "socm_pair": 12})) == []
    swapped = [{**row, "corpus": "wikipedia" if row["corpus"] == "msmarco" else "msmarco"} for row in pairs]
    staged[1] = stage_all(tmp_path / "swapped", {"socm_pair": swapped})[0]
    assert failures(check_tables(staged, {}))


def test_null_and_doubled_positions_fail_without_an_accident(tmp_path: Path) -> None:
    rows = plausible_rows()
    rows["socm_text"] += [rows["socm_text"][0], {**rows["socm_text"][1], "position": None}]
    staged = stage_all(tmp_path, {name: rows[name] for name in ("socm_text", "socm_pair")})
    failed = failures(check_tables(staged, {}))
    assert {(row.table_name, row.expectation) for row in failed} == {
        ("socm_text", "expect_compound_columns_to_be_unique"),
        ("socm_text", "expect_column_values_to_not_be_null"),
    }


@pytest.mark.parametrize("table", ["token", "socm_text", "socm_pair"])
def test_a_missing_or_cut_off_file_is_named(tmp_path: Path, table: str) -> None:
    staged = stage_all(tmp_path, {table: plausible_rows()[table]})
    path = Path(staged[0].paths[0])
    os.truncate(path, 100)
    with pytest.raises(StorageError, match=rf"{path.name} cannot be read"):
        check_tables(staged, {})
    path.unlink()
    with pytest.raises(StorageError, match=rf"{path.name} is missing"):
        check_tables(staged, {})


def test_a_flipped_bit_in_a_number_is_found_by_its_checksum(tmp_path: Path) -> None:
    """Any other double would be a valid number too."""
    path = tmp_path / "socm_text.parquet"
    count = 20_000
    numbers = np.random.default_rng(0).random(count)
    write_columns(
        path,
        [
            {
                **dict.fromkeys(("corpus", "corpus_id"), ["w"] * count),
                **dict.fromkeys(("position", "tokens"), np.arange(count) + 1),
                **dict.fromkeys(("mean_norm", "trace_sigma", "mean_cosine"), numbers),
                **dict.fromkeys(("exceeds_trace_bound", "is_undefined", "is_truncated"), np.zeros(count, dtype=bool)),
            }
        ],
        SCHEMAS["socm_text"],
    )
    content = bytearray(path.read_bytes())
    # The file is mostly the random numbers, and what does not compress lies in it as it is.
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match="cannot be read"):
        check_tables([StagedTable("socm_text", (str(path),))], {})


# ---- A column that is not there is an exception and not a verdict; and every column that a suite names is there ----


@pytest.mark.parametrize("table", mostly_slow(TABLES, ("text", "corpus", "socm_pair")))
def test_a_missing_column_is_an_exception_and_not_a_verdict(table: str) -> None:
    column = next(name for name, one in TABLES[table].columns.items() if not one.is_nullable)
    failed = failures(check(table, good(table).drop(columns=column)))
    own = [row for row in failed if column in row.column_name]
    assert own
    assert all(row.raised_exception and row.blocks for row in own if row.severity == "critical")
    assert all(column in (row.observed or "") for row in own)
    assert all(row.examples == [] for row in own)


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.rules])
def test_a_rule_is_left_out_where_one_of_its_columns_is_missing(table: str) -> None:
    traces = {"wikipedia": pd.Series(TRACES)}
    whole = TABLES[table].derive(good(table), traces)
    for column in {name for rule in TABLES[table].rules for name in rule.columns} & set(SCHEMAS[table]):
        left_out = {column}
        for rule in TABLES[table].rules:
            if left_out & set(rule.columns):
                left_out.add(rule.name)
        found = TABLES[table].derive(good(table).drop(columns=column), traces)
        pd.testing.assert_frame_equal(found, whole.drop(columns=list(left_out)))


@pytest.mark.parametrize("table", TABLES)
def test_suites_name_only_columns_that_are_staged_or_derived(table: str) -> None:
    frame = TABLES[table].derive(good(table), {"wikipedia": pd.Series(TRACES)})
    for expectation in suite_of(TABLES[table], 1):
        kwargs = expectation.configuration.kwargs
        named = [kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs]
        assert {*named, *kwargs.get("column_list", [])} <= set(frame.columns)
    assert set(good(table).columns) == set(SCHEMAS[table])


def test_only_two_suites_have_warnings() -> None:
    warned = {name for name, table in TABLES.items() if any(one.warn for one in table.columns.values())}
    assert warned == {"sticky_summary", "socm_summary"}
