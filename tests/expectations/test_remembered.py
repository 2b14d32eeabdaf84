"""Nothing is checked twice but what blocks publishing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import great_expectations.expectations as gxe
import pyarrow.parquet as pq
import pytest
from broken_rows import check, failures, frame_of, generated
from great_expectations.core import id_dict
from great_expectations.expectations import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from plausible import plausible_rows, stage_all
from some_rows import mostly_slow

from embaudit.steps.staging.stage import write_rows
from embaudit.warehouse.expectations.check import SCHEMA, check_tables
from embaudit.warehouse.expectations.suites import configurations_built_once
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable
from embaudit.words.errors import StorageError

PLAN = {"socm_text": 4, "socm_pair": 6}
MARK = "this was remembered"


@pytest.fixture
def staging(tmp_path: Path) -> str:
    return str(tmp_path / "staging")


@pytest.fixture
def staged(tmp_path: Path) -> list[StagedTable]:
    return stage_all(tmp_path / "tables", {name: plausible_rows()[name] for name in PLAN})


def mark_remembered(staging: str) -> int:
    """Change what is remembered, so that it is told from what is checked anew; how many tables it is."""
    paths = list(Path(staging).rglob("checks-*.parquet"))
    for path in paths:
        rows = [json.loads(row) | {"observed": MARK} for row in pq.read_table(path)["result"].to_pylist()]
        write_rows(path, [{"result": json.dumps(row)} for row in rows], SCHEMA)
    return len(paths)


def remembered(staged: list[StagedTable], staging: str, plan: dict[str, int]) -> set[str]:
    results = check_tables(staged, plan, staging)
    assert failures(results) == []
    tables = {row.table_name for row in results if row.observed == MARK}
    assert not tables & {row.table_name for row in results if row.observed != MARK}
    return tables


def test_what_passed_is_not_checked_again(staged: list[StagedTable], staging: str) -> None:
    first = check_tables(staged, PLAN, staging)
    assert first == check_tables(staged, PLAN, staging) == check_tables(staged, PLAN)
    assert mark_remembered(staging) == 2
    assert remembered(staged, staging, PLAN) == {"socm_text", "socm_pair"}
    # Another plan of rows is another question.
    assert remembered(staged, staging, {"socm_text": 4}) == {"socm_text"}


def test_other_bytes_are_checked(staged: list[StagedTable], staging: str) -> None:
    check_tables(staged, PLAN, staging)
    mark_remembered(staging)
    pairs = Path(staged[1].paths[0])
    damaged = pq.read_table(pairs).to_pandas()
    damaged.loc[0, "d_mu"] = 2.0
    damaged.to_parquet(pairs, index=False)
    for _ in range(2):
        failed = failures(check_tables(staged, PLAN, staging))
        assert ("socm_pair", "d_mu") in {(row.table_name, row.column_name) for row in failed}
    pairs.unlink()
    with pytest.raises(StorageError, match=rf"{pairs.name} is missing"):
        check_tables(staged, PLAN, staging)


def test_a_warning_is_said_again_and_not_looked_for_again(staging: str, tmp_path: Path) -> None:
    (row, *_) = plausible_rows()["socm_summary"]
    staged = stage_all(tmp_path / "tables", {"socm_summary": [{**row, "pooling_is_mean": False}]})
    first = check_tables(staged, {}, staging)
    assert {(row.column_name, row.severity) for row in failures(first)} == {("pooling_is_mean", "warning")}
    assert first == check_tables(staged, {}, staging)
    assert mark_remembered(staging) == 1
    assert {row.observed for row in check_tables(staged, {}, staging)} == {MARK}


def test_pairs_are_checked_again_when_their_texts_change(staged: list[StagedTable], staging: str) -> None:
    check_tables(staged, PLAN, staging)
    texts = Path(staged[0].paths[0])
    # Smaller traces, within their own rules: the distances of the pairs are beyond what they allow.
    smaller = pq.read_table(texts).to_pandas().assign(trace_sigma=1e-3, exceeds_trace_bound=False)
    smaller.to_parquet(texts, index=False)
    failed = failures(check_tables(staged, PLAN, staging))
    assert {row.table_name for row in failed} == {"socm_pair"}


# ---- configurations that are built once say what configurations that are built anew each time say ----


REPLACED = (
    (Expectation, "configuration"),
    (ExpectationConfiguration, "to_domain_obj"),
    (id_dict, "convert_to_json_serializable"),
)


@pytest.mark.parametrize("table", mostly_slow(TABLES, ("finding",)))
def test_results_are_the_same_as_without(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    frame = frame_of(table, [*generated(table)])
    quick = check(table, frame, planned=len(frame))
    monkeypatch.setattr("embaudit.warehouse.expectations.suites.configurations_built_once", nullcontext)
    assert quick == check(table, frame, planned=len(frame))
    assert not all(result.success for result in quick)


def test_a_configuration_is_kept_within_alone() -> None:
    expectation = gxe.ExpectColumnValuesToNotBeNull(column="a")
    assert expectation.configuration is not expectation.configuration
    with configurations_built_once(), ThreadPoolExecutor(1) as another:
        assert expectation.configuration is expectation.configuration
        assert another.submit(lambda: expectation.configuration is not expectation.configuration).result()
    expectation.column = "b"
    assert expectation.configuration.kwargs == {"column": "b"}


@pytest.mark.parametrize(("owner", "name"), REPLACED, ids=[name for _, name in REPLACED])
def test_great_expectations_is_as_it_was_afterwards(owner: object, name: str) -> None:
    before = vars(owner)[name]
    with configurations_built_once(), configurations_built_once():
        assert vars(owner)[name] is not before
    assert vars(owner)[name] is before
    with pytest.raises(KeyError), configurations_built_once():
        raise KeyError
    assert vars(owner)[name] is before
