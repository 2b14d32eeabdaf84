"""Audits side by side: what is subtracted and what is not, which tokens came and went, and what the command says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from plausible import audit_record, measure_runs, plausible_rows
from ready_warehouses import put_audit
from told_before import unread

from embaudit.cli.main import cli
from embaudit.declared.document import Table
from embaudit.pages.compare import comparison_page
from embaudit.pages.sides import Comparison, Side, compare_sides, read_sides
from embaudit.words.errors import UsageError

Rows = dict[str, list[dict[str, Any]]]


def changed(table: str, change: Callable[[dict[str, Any]], dict[str, Any]], rows: Rows | None = None) -> Rows:
    rows = rows or plausible_rows("c2", "owner/other")
    return {**rows, table: [{**row, **change(row)} for row in rows[table]]}


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a1; a2, the same but for its figures and tokens; a3 of other texts; a4 with other settings; a5 of old code."""
    place = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("compared") / "warehouse.duckdb"))
    put_audit(place, audit_record("a1", "c1"), plausible_rows("c1", "owner/one"), measure_runs())
    rows = changed(
        "socm_summary", lambda row: {name: row[name] + 0.2 for name in ("socm_mean", "socm_low", "socm_high")}
    )
    rows = changed("sticky_validation", lambda row: {"severity": "weak"} if row["token_id"] == 5 else {}, rows)
    rows = changed("finding", lambda row: {"level": "problem"} if row["name"] == "worst_token" else {}, rows)
    put_audit(place, audit_record("a2", "c2", minutes=1), rows, measure_runs())
    rows = changed("audit_corpus", lambda row: {"corpus_id": "w2"} if row["name"] == "wikipedia" else {})
    put_audit(place, audit_record("a3", "c2", minutes=2), rows, measure_runs())
    other = replace(audit_record("a4", "c2", minutes=3), settings={"sticky": {"copies": 4}})
    put_audit(place, other, plausible_rows("c2", "owner/other"), measure_runs())
    runs = [replace(run, version=0) if run.measure == "socm" else run for run in measure_runs()]
    put_audit(place, audit_record("a5", "c2", minutes=4), plausible_rows("c2", "owner/other"), runs)
    return place


@pytest.fixture(scope="module")
def sides(warehouse: Path) -> dict[str, Side]:
    return {side.newest.audit_id: side for side in read_sides(warehouse, ["a1", "a2", "a3", "a4", "a5"])}


def ids(sides: list[Side]) -> list[list[str]]:
    return [[audit.audit_id for audit in side.audits] for side in sides]


def but(side: Side, **changes: Any) -> Side:
    """The same as one other audit."""
    return Side([replace(side.newest, **{"audit_id": "a0", **changes})])


def figures_of(
    comparison: Comparison, summary: str = "socm_summary", measure: str = "socm_mean"
) -> list[dict[str, Any]]:
    return [row for row in comparison.figures if (row["summary"], row["measure"]) == (summary, measure)]


def changes_of(comparison: Comparison, *figure: str) -> set[str]:
    return {row["change"] for row in figures_of(comparison, *figure)}


def test_a_change_beyond_both_intervals_is_worse_and_has_one_itself(sides: dict[str, Side]) -> None:
    comparison = compare_sides(sides["a1"], sides["a2"])
    assert not comparison.not_compared
    socm = figures_of(comparison)
    assert {row["change"] for row in socm} == {"worse"}
    for row in socm:
        assert row["delta"] == pytest.approx(0.2)
        assert 0 < row["low"] < row["delta"] < row["high"]
    assert comparison.figures[: len(socm)] == socm
    assert changes_of(compare_sides(sides["a2"], sides["a1"])) == {"better"}
    same = compare_sides(sides["a1"], but(sides["a1"]))
    assert {(row["delta"], row["change"]) for row in same.figures} == {(0.0, "")}


@pytest.mark.parametrize(
    ("other", "why", "about"),
    [
        ("a3", "different texts in wikipedia", "wikipedia"),
        ("a4", "different settings of sticky: copies", "sticky"),
        ("a5", "socm was measured by a different version", "socm"),
    ],
)
def test_another_figure_is_named_and_not_subtracted(sides: dict[str, Side], other: str, why: str, about: str) -> None:
    comparison = compare_sides(sides["a1"], sides[other])
    assert list(comparison.not_compared) == [why]
    assert all(about in name for name in comparison.not_compared[why])
    assert comparison.figures
    shared = {figure.name for figure in sides["a1"].newest.figures} & {
        figure.name for figure in sides[other].newest.figures
    }
    assert len(comparison.figures) + len(comparison.not_compared[why]) == len(shared)
    assert any(why in one for one in said_of(sides["a1"], sides[other]))


def test_tokens_come_and_go(sides: dict[str, Side]) -> None:
    lost = compare_sides(sides["a1"], sides["a2"]).tokens
    assert lost is not None
    assert [(row["token"], row["severe"]) for row in lost] == [("ন", "in the first")]
    assert lost[0]["low"] <= lost[0]["loss"] <= lost[0]["high"]
    gained = compare_sides(sides["a2"], sides["a1"]).tokens
    assert gained is not None
    assert [(row["token"], row["severe"]) for row in gained] == [("ন", "in this one")]
    assert compare_sides(sides["a1"], sides["a4"]).tokens is None
    without = compare_sides(sides["a1"], but(sides["a2"], severe=None))
    assert (without.tokens, without.tokens_why) == (None, "one of the two did not look for sticky tokens")
    # Those of one side after another, and of each the worst first, whatever it is called.
    assert sides["a1"].newest.severe
    known = next(iter(sides["a1"].newest.severe.values()))
    losses = {"a": 0.5, "c": 0.9, "b": 0.9}
    severe = {token: {**known, "loss": loss} for token, loss in losses.items()}
    named = compare_sides(but(sides["a1"], severe={"z": known}), but(sides["a2"], severe=severe)).tokens
    assert named is not None
    assert [row["token"] for row in named] == ["z", "b", "c", "a"]


def said_of(*sides: Side) -> list[str]:
    return [finding.sentence for finding in comparison_page(list(sides)).findings]


def test_findings_that_got_worse_are_named(sides: dict[str, Side]) -> None:
    said = said_of(sides["a1"], sides["a2"])
    assert any(one.endswith("1 finding got worse: sticky.worst_token.") for one in said)
    assert not any("got worse:" in one for one in said_of(sides["a2"], sides["a1"]))
    # Of another question, they are no change.
    worse = but(sides["a4"], findings=sides["a2"].newest.findings)
    assert not any("got worse:" in one for one in said_of(sides["a1"], worse))


def test_findings_that_changed_come_first_with_what_they_say_now(sides: dict[str, Side]) -> None:
    before = sides["a1"].newest.findings
    last = [*before][-1]
    other = "look" if before[last]["level"] == "ok" else "ok"
    now = but(sides["a2"], findings={**before, last: {**before[last], "level": other}})
    (table,) = comparison_page([sides["a1"], now]).sections[0].parts
    assert isinstance(table, Table)
    assert len(table.rows) == len(before) > 1
    assert table.rows[0] == (".".join(last), before[last]["level"], other, before[last]["sentence"])
    assert not any(row[-1] for row in table.rows[1:])


def test_another_seed_is_said(sides: dict[str, Side]) -> None:
    reseeded = but(sides["a1"], run={**sides["a1"].newest.run, "seed": 7})
    assert compare_sides(sides["a1"], reseeded).run_otherwise == ["seed"]


def test_the_states_that_are_pooled_are_judged_and_layers_are_not(sides: dict[str, Side]) -> None:
    """A layer of one model is no layer of a deeper one to be better or worse than."""
    own = sides["a1"].newest.figures
    higher = [replace(figure, value=figure.value + 9, low=None, high=None) for figure in own]
    rows = compare_sides(sides["a1"], but(sides["a1"], figures=higher)).figures
    judged = {
        table: {row["change"] for row in rows if row["summary"] == table} for table in ("layer_stat", "pooled_stat")
    }
    assert judged == {"layer_stat": {""}, "pooled_stat": {"worse", "better", ""}}


def test_audits_are_named_by_id_or_by_checkpoint(warehouse: Path) -> None:
    assert ids(read_sides(warehouse, ["a2", "latest"])) == [["a2"], ["a5"]]
    one, other = ids(read_sides(warehouse, ["owner/one", "owner/other"]))
    assert (one, other) == (["a1"], ["a5", "a4", "a3"]), "a2 asked nothing that a5 did not ask again"
    with pytest.raises(UsageError, match="named twice"):
        read_sides(warehouse, ["a1", "owner/one"])
    with pytest.raises(UsageError, match="has no audit"):
        read_sides(warehouse, ["a1", "zz"])


def test_the_command_prints_a_page_json_and_a_file(warehouse: Path, tmp_path: Path) -> None:
    page = tmp_path / "compared.html"
    words = ["compare", "a1", "a2", "a3", "--warehouse", str(warehouse)]
    printed = CliRunner().invoke(cli, [*words, "--out", str(page)], catch_exceptions=False)
    assert printed.exit_code == 0
    for expected in (
        "Compared with owner/one (a1)",
        "socm_summary.socm_mean",
        "worse",
        "1 only in the first",
        "not compared: different",
    ):
        assert expected in " ".join(printed.output.split())
    html = page.read_text(encoding="utf-8")
    assert all(f'id="owner-other-{audit}"' in html and f'href="#owner-other-{audit}"' in html for audit in ("a2", "a3"))
    told = json.loads(CliRunner().invoke(cli, [*words, "--json"], catch_exceptions=False).output)
    assert [one["audit_id"] for one in told["audits"]] == ["a1", "a2", "a3"]
    assert [one["audit_id"] for one in told["against_first"]] == ["a2", "a3"]


BROKEN = {"kind": "do not serve", "line": "Do not serve: layer 2 holds random numbers."}


def spread(side: Side, by: float, **changes: Any) -> Side:
    """Another audit in which SOCM is lower, which is better, and quality is lower by so much."""
    moves = {"socm_mean": -0.2, "score": -by, "words_gain": -by, "input_gain": -by}
    figures = [
        replace(
            figure,
            **{
                name: value + moves.get(figure.measure, 0.0)
                for name in ("value", "low", "high")
                if (value := getattr(figure, name)) is not None
            },
        )
        for figure in side.newest.figures
    ]
    return but(side, figures=figures, **changes)


@pytest.mark.parametrize(
    ("broken", "fell", "socm", "why"),
    [
        (None, 0.0, "better", ""),
        # Less than noise.
        (None, 0.01, "better", ""),
        (None, 0.3, "means nothing", "fell ("),
        (BROKEN, 0.0, "means nothing", "must not be served"),
        (BROKEN, 0.3, "means nothing", "must not be served"),
    ],
)
def test_nothing_is_better_in_a_checkpoint_whose_quality_fell(
    sides: dict[str, Side], broken: dict[str, str] | None, fell: float, socm: str, why: str
) -> None:
    other = spread(sides["a1"], fell, **({"verdict": broken} if broken else {}))
    comparison = compare_sides(sides["a1"], other)
    assert changes_of(comparison) == {socm}
    assert why in comparison.means_nothing
    assert bool(why) == bool(comparison.means_nothing)
    findings = comparison_page([sides["a1"], other]).findings
    if broken:
        assert (findings[0].level, broken["line"] in findings[0].sentence) == ("problem", True)
    if why:
        said = " ".join(finding.sentence for finding in findings)
        assert "moved the other way and mean nothing" in said
        assert ", 0 better" in said
    if fell > 0.1:
        assert comparison.figures[0]["summary"] == "quality", "what counts comes first"


def test_nothing_is_worse_than_in_a_broken_checkpoint(sides: dict[str, Side]) -> None:
    """Random weights have a low SOCM: the sound checkpoint beside them has not got worse."""
    first, other = spread(sides["a1"], 0.3, verdict=BROKEN), but(sides["a1"])
    comparison = compare_sides(first, other)
    assert changes_of(comparison) == {"means nothing"}
    assert changes_of(comparison, "quality", "score") == {"better"}


def test_a_page_of_all_is_told(sides: dict[str, Side]) -> None:
    assert not unread("Comparison", comparison_page(list(sides.values())))


def test_that_nobody_looked_is_said(sides: dict[str, Side]) -> None:
    page = comparison_page([sides["a1"], but(sides["a1"], verdict=None)])
    assert not unread("Comparison", page)
    (finding,) = (finding for finding in page.findings if "was not checked" in finding.sentence)
    assert finding.level == "not measured"
    assert finding.advice == "embaudit audit owner/one --measures integrity,quality"


def test_a_difference_that_another_precision_explains_is_not_called_a_change(sides: dict[str, Side]) -> None:
    """SOCM without an interval may move by .02 or so, and by 2 % of itself more if one side is in half precision."""

    def but_socm(dtype: str, more: float) -> Side:
        figures = [
            replace(one, value=one.value + more, low=None, high=None, dtype=dtype)
            if one.name[0::2] == ("socm_summary", "socm_mean")
            else one
            for one in sides["a1"].newest.figures
        ]
        return but(sides["a1"], figures=figures, audit_id="a0" if more else "a1")

    first = but_socm("float32", 0.0)
    worse: dict[str, int] = {}
    for dtype in ("float32", "bfloat16"):
        compared = compare_sides(first, but_socm(dtype, 0.0205))
        worse[dtype] = sum(row["change"] == "worse" for row in figures_of(compared))
        assert bool(compared.precision) is (dtype == "bfloat16")
        page = comparison_page([first, but_socm(dtype, 0.0205)])
        assert any("is not called a change" in one.sentence for one in page.findings) is (dtype == "bfloat16")
    assert worse == {"float32": 1, "bfloat16": 0}
    assert compared.precision == (
        "1 figure is in bfloat16 on this side, and in float32 on the first: a difference that this may explain is not "
        "called a change, which is so of 1"
    )
    assert changes_of(compare_sides(first, but_socm("bfloat16", 0.2))) == {"worse"}
