"""A checkpoint's name stands for its newest result of each measure and question, wherever one is given."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result
from plausible import audit_record, measure_runs, plausible_rows
from ready_warehouses import put_audit
from some_rows import mostly_slow
from told_before import unread

from embaudit.cli.main import cli
from embaudit.declared.document import Page, Table
from embaudit.measures import MEASURES
from embaudit.pages.index import index_page, read_index
from embaudit.pages.write import GENERAL, ONLY_WITH, read_audit, read_state, state_page
from embaudit.system.settings import warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.named import find_checkpoint, find_result

Rows = dict[str, list[dict[str, Any]]]
MEASURE_OF_TABLE = {row.table.name: name for name, measure in MEASURES.items() for row in measure.rows}
UNUSED = ("gate_result", "regression", "watched_revision", "audit_backbone")
FULL = ("sticky", "socm", "layers", "geometry")


def rows_of(checkpoint: str, source: str, measures: Collection[str], level: str = "ok", **tables: Any) -> Rows:
    """The rows of an audit of these measures, each of which found something of a level."""
    rows = {name: found for name, found in plausible_rows(checkpoint, source).items() if _is_kept(name, measures)}
    found = plausible_rows()["finding"][0]
    rows["finding"] = [
        {
            **found,
            "measure": measure,
            "name": "made_up",
            "place": place,
            "level": level,
            "sentence": f"{measure}: {level}.",
        }
        for place, measure in enumerate(measures)
    ]
    return {**rows, **{name: [] for name in UNUSED}, **tables}


def _is_kept(table: str, measures: Collection[str]) -> bool:
    return table not in MEASURE_OF_TABLE or MEASURE_OF_TABLE[table] in measures


def put(warehouse: Path, audit_id: str, rows: Rows, measures: Collection[str], minutes: int, **changes: Any) -> None:
    record = audit_record(audit_id, rows["checkpoint"][0]["checkpoint_id"], minutes=minutes)
    runs = [run for run in measure_runs() if run.measure in measures]
    put_audit(warehouse, replace(record, **changes), rows, runs)


@pytest.fixture(scope="module")
def two_audited(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("state") / "warehouse.duckdb"))
    put(place, "x1", rows_of("c1", "owner/x", FULL), FULL, 0)
    put(place, "y1", rows_of("c2", "owner/y", FULL), FULL, 1)
    put(place, "x2", rows_of("c1", "owner/x", ["impact"], "problem"), ["impact"], 2)
    return place


@pytest.fixture
def warehouse(two_audited: Path, tmp_path: Path) -> Path:
    """Two checkpoints, fully audited; then the impact of sticky tokens on the first."""
    return Path(shutil.copy(two_audited, tmp_path / "warehouse.duckdb"))


def said(warehouse: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--warehouse", str(warehouse)], catch_exceptions=False)


def compared(warehouse: Path, *names: str) -> dict[str, Any]:
    (one,) = json.loads(said(warehouse, "compare", *names, "--json").output)["against_first"]
    return dict(one)


@pytest.mark.slow
@pytest.mark.parametrize("names", [("owner/x", "owner/y"), ("owner/y", "owner/x")])
def test_what_was_measured_once_more_hides_nothing_from_a_comparison(warehouse: Path, names: tuple[str, str]) -> None:
    by_audits = compared(warehouse, *(name.replace("owner/", "") + "1" for name in names))
    by_names = compared(warehouse, *names)
    assert by_names["figures"] == by_audits["figures"]
    assert by_names["figures"]
    ((why, missed),) = by_names["not_compared"].items()
    assert why.startswith("owner/y")
    assert why.endswith("was not measured by impact")
    output = " ".join(said(warehouse, "compare", *names).output.split())
    assert f"got worse by more than noise, 0 better; {len(missed)} could not be compared." in output


def test_the_headline_counts_what_only_one_audit_has(warehouse: Path) -> None:
    output = " ".join(said(warehouse, "compare", "x2", "y1").output.split())
    assert "not measured" in output
    assert "there are no figures to compare" in output
    assert "was not measured by socm" in output


def test_each_figure_comes_from_the_newest_audits_that_asked_the_same(warehouse: Path) -> None:
    """A search with other settings, on one side only, must not take the place of the one that both have."""
    other = {"settings": {"sticky": {"copies": 2}}}
    put(warehouse, "x3", rows_of("c1", "owner/x", ["sticky"]), ["sticky"], 3, **other)
    assert compared(warehouse, "owner/y", "owner/x")["figures"] == compared(warehouse, "y1", "x1")["figures"]
    put(warehouse, "y3", rows_of("c2", "owner/y", ["sticky"]), ["sticky"], 4, **other)
    with open_reader(warehouse) as connection:
        state = find_checkpoint(connection, "owner/x")
        assert state is not None
        assert list(state.audits) == ["x3", "x2", "x1"]
        assert find_result(connection, "owner/x", "sticky") == "x3"
        assert find_result(connection, "owner/x", "socm") == "x1"


def test_a_newer_audit_of_the_same_question_replaces_the_older(warehouse: Path) -> None:
    put(warehouse, "x4", rows_of("c1", "owner/x", ["socm"]), ["socm"], 5)
    with open_reader(warehouse) as connection:
        state = find_checkpoint(connection, "owner/x")
    assert state is not None
    assert state.audits == {
        "x4": {"socm"},
        "x2": {"impact"},
        "x1": set(FULL) - {"socm"},
    }


@pytest.mark.parametrize(
    ("content", "override", "expected"),
    mostly_slow(
        [
            ("c1", {}, "c1"),
            ("c9", {}, "c9"),
            ("c1 cls", {"pooling": "cls"}, "c1"),
            ("c1 short", {"max_length": 8}, "c1"),
            ("c1 prompted", {"query_prompt": "query: "}, "c1"),
            ("c9", {"pooling": "cls"}, "c9"),
        ],
        2,
    ),
)
def test_a_name_stands_for_the_newest_content_as_it_is_served(
    warehouse: Path, content: str, override: dict[str, Any], expected: str
) -> None:
    """An override makes another checkpoint of the same weights; new weights are what the name now stands for."""
    rows = rows_of(content, "owner/x", ["geometry"])
    served = plausible_rows(content.split()[0])["checkpoint"][0]
    rows["checkpoint"][0]["weights_sha256"] = served["weights_sha256"]
    put(warehouse, "x5", rows, ["geometry"], 6, settings={"source": "owner/x", **override})
    with open_reader(warehouse) as connection:
        state = find_checkpoint(connection, "owner/x")
    assert state is not None
    assert state.checkpoint_id == expected


def index_of(warehouse: Path) -> tuple[Page, list[dict[str, Any]]]:
    page = index_page(read_index(warehouse_at(str(warehouse)), warehouse.parent))
    (table,) = [part for part in page.sections[0].parts if isinstance(part, Table)]
    return page, table.records()


def test_the_index_keeps_every_figure_and_does_not_put_the_most_measured_first(warehouse: Path) -> None:
    put(warehouse, "y2", rows_of("c2", "owner/y", ["geometry"], "look"), ["geometry"], 7)
    page, rows = index_of(warehouse)
    assert not unread("Index", page)
    assert [(row["checkpoint"], row["worst finding"], row["by what not all have"]) for row in rows] == [
        ("owner/y", "look", ""),
        ("owner/x", "ok", "problem"),
    ]
    assert all(row["mean SOCM"] is not None and row["worst loss"] is not None for row in rows)
    sentences = [finding.sentence for finding in page.findings]
    assert "Problems in 1 of 2 checkpoints: owner/x (impact, not measured in all)." in sentences
    assert "Not every checkpoint was measured by everything: impact in 1 of 2." in sentences


def test_a_gate_is_not_forgotten_by_an_audit_without_a_policy(warehouse: Path) -> None:
    gates = [{**row, "audit_id": "x1"} for row in plausible_rows()["gate_result"]]
    put(warehouse, "x1", rows_of("c1", "owner/x", FULL, gate_result=gates), FULL, 0)
    _, rows = index_of(warehouse)
    assert {row["checkpoint"]: row["gate"] for row in rows} == {"owner/x": "tripped", "owner/y": None}


def test_a_page_shows_every_result_once(warehouse: Path, tmp_path: Path) -> None:
    output = said(warehouse, "show", "owner/x", "--full").output
    for words in ("Newest results of owner/x", "x1, ", "x2, ", "impact: problem.", "Second-order collapse"):
        assert words in output
    out = tmp_path / "page.html"
    assert said(warehouse, "report", "owner/x", "--out", str(out)).exit_code == 0
    html = out.read_text()
    assert "impact: problem." in html
    assert "socm: ok." in html
    assert len(json.loads(said(warehouse, "show", "owner/x", "--json").output)) == 2


@pytest.mark.parametrize(
    ("rule", "code"),
    mostly_slow(
        [
            ('[require]\nmeasures = ["sticky", "socm", "impact"]', 0),
            ('[require]\nmeasures = ["sticky", "length"]', 1),
            ('[require]\nno_finding = "problem"', 1),
            ('[[limit]]\nsummary = "socm_summary"\nmeasure = "socm_mean"\nmax = 2.0', 0),
            ('[[limit]]\nsummary = "impact"\nmeasure = "score"\nmax = 2.0', 0),
            ('[[limit]]\nsummary = "socm_summary"\nmeasure = "socm_mean"\nmax = 0.0', 1),
            ('[require]\nprofiles = ["quick"]', 0),
            ('[require]\nprofiles = ["paper"]', 1),
        ],
        3,
    ),
)
def test_a_gate_reads_the_state_of_a_checkpoint(warehouse: Path, tmp_path: Path, rule: str, code: int) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(rule)
    assert said(warehouse, "gate", "owner/x", "--policy", str(policy)).exit_code == code


def test_results_of_another_profile_do_not_count_where_one_is_required(warehouse: Path, tmp_path: Path) -> None:
    put(warehouse, "x6", rows_of("c1", "owner/x", ["sticky"]), ["sticky"], 8, profile="paper", seed=1)
    policy = tmp_path / "policy.toml"
    policy.write_text('[require]\nprofiles = ["paper"]\nmeasures = ["sticky"]')
    assert said(warehouse, "gate", "owner/x", "--policy", str(policy)).exit_code == 0
    policy.write_text('[require]\nprofiles = ["paper"]\nmeasures = ["socm"]')
    assert said(warehouse, "gate", "owner/x", "--policy", str(policy)).exit_code == 1


def test_a_change_is_measured_against_what_the_previous_revision_was_asked_too(warehouse: Path, tmp_path: Path) -> None:
    put(warehouse, "x7", rows_of("c7", "owner/x", FULL), FULL, 9)
    put(warehouse, "x8", rows_of("c7", "owner/x", ["length"]), ["length"], 10)
    policy = tmp_path / "policy.toml"
    policy.write_text('[[change]]\nsummary = "socm_summary"\nmeasure = "socm_mean"\nmax_increase = 0.0')
    verdict = json.loads(said(warehouse, "gate", "owner/x", "--policy", str(policy), "--json").output)
    assert (verdict["outcome"], verdict["audits"], verdict["baseline_audit_id"]) == ("passed", ["x8", "x7"], "x1")


def test_an_audit_by_its_id_is_that_audit_and_no_more(warehouse: Path) -> None:
    output = said(warehouse, "show", "x1", "--full").output
    assert "Audit of owner/x" in output
    assert "impact" not in output.split("Settings")[0]


def test_differences_from_a_backbone_are_asked_of_what_has_one(
    published_warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ONLY_WITH:
        monkeypatch.setitem(GENERAL, name, "SELECT error('asked') WHERE ? <> ''")
    assert read_audit(published_warehouse, None)["backbone_deltas"] == []
    monkeypatch.setitem(GENERAL, "backbones", "SELECT 1 WHERE ? <> ''")
    with pytest.raises(duckdb.Error, match="asked"):
        read_audit(published_warehouse, None)


def test_a_checkpoint_has_one_verdict(warehouse: Path) -> None:
    """Of the newest audit that has one: a page that says two leaves its reader with none."""
    page = state_page(read_state(warehouse, "owner/x"))
    assert not unread("Audit", page)
    assert [one.name for one in page.findings].count("verdict") == 1
