"""docs/reproduction.md is what the committed figures say; how rows are worded, and why two runs differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reproduction import published
from benchmarks.reproduction.compared import SOURCES, compared, rounded_up
from benchmarks.reproduction.kept import FIGURES, StageResult
from benchmarks.reproduction.page import PAGE, committed, page
from benchmarks.reproduction.stages import STAGES, sticky


def test_the_page_is_what_the_committed_figures_say() -> None:
    results = committed()
    assert all(result.limit is None for result in results.values())
    if not results:
        assert not PAGE.exists()
        return
    assert page(results) == PAGE.read_text("utf-8")
    # Of one checkpoint; and each committed file is of a stage.
    assert len({result.checkpoint_id for result in results.values()}) == 1
    assert {path.stem for path in FIGURES.glob("*.json")} == results.keys()


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (0.0, "exactly"),
        (0.00234, "0.003"),
        (0.003, "0.003"),
        (2e-7, "2e-07"),
        (2.1e-7, "3e-07"),
        (21.0, "30"),
        (0.96, "1.0"),
    ],
)
def test_a_difference_is_rounded_up_to_one_digit(difference: float, said: str) -> None:
    assert rounded_up(difference) == said


@pytest.mark.parametrize(
    ("published_figure", "ours", "within"),
    [
        (0.5, 0.5, "exactly"),
        (0.5, {"value": 0.52, "low": 0.49, "high": 0.55}, "0.02, in our interval"),
        (0.5, {"value": 0.52, "low": 0.51, "high": 0.55}, "0.02, outside our interval"),
        (0.5, {"value": 0.52, "low": None, "high": None}, "0.02"),
        (None, 0.52, "nothing to compare"),
    ],
)
def test_a_row_says_how_far_two_figures_are_apart(published_figure: float | None, ours: Any, within: str) -> None:
    row = compared("a figure", published_figure, ours, "P", 2)
    assert row.within == within
    assert row.published == ("–" if published_figure is None else "0.50 [P]")
    assert row.ours.startswith("0.5")
    assert "P" in SOURCES


@pytest.fixture
def protocol() -> dict[str, Any]:
    """A run of ours that agrees with the published one but for four tokens."""
    listed = published.published_shortlist()
    rows = {
        one.token_id: {
            "token_id": one.token_id,
            "token": one.token,
            "score": one.score,
            "score_rank": place,
            "value": one.value or 0.7,
            "is_shortlisted": True,
            "is_sticky": one.is_sticky,
        }
        for place, one in enumerate(listed, start=1)
    }
    gambia, oskar, jules = 26_728, 28_626, 11_044
    rows[gambia] |= {"is_shortlisted": False, "is_sticky": False, "score": 40.0}
    rows[oskar] |= {"is_sticky": False, "value": 0.80}
    rows[jules] |= {"is_sticky": True, "value": 0.90}
    rows[5] = {**rows[jules], "token_id": 5, "token": "[unused4]"}
    return {
        "vocabulary": 30_522,
        "categories": published.CATEGORIES,
        "scanned": 23_699,
        "pair_difference": 3e-7,
        "cutoff": 49.1,
        "candidates": 474,
        "threshold": 0.825,
        "sticky": 21,
        "threshold_of_published_shortlist": 0.825,
        "tokens": list(rows.values()),
    }


def test_each_token_says_why_the_runs_differ(protocol: dict[str, Any]) -> None:
    why = {name.strip("`"): reason for name, *_, reason in sticky.reasons(protocol)}
    assert len(why) == 23
    assert why["gambia"] == "published only: score below our cutoff 49.10"
    assert why["oskar"] == "published only: value not above 0.8250"
    assert why["jules"] == "ours only: published value lower"
    assert why["[unused4]"] == "ours only: not on the published shortlist"
    assert sum(reason == "both" for reason in why.values()) == 19
    said = sticky.said(protocol)
    assert "19 sticky tokens are common, 2 only published (1 of them" in said
    assert "2 only ours" in said


def test_the_protocol_s_rows_count_what_is_common(protocol: dict[str, Any]) -> None:
    rows = {row.what: row for row in sticky.compare(protocol)}
    assert rows["on both shortlists"].ours == "473"
    assert rows["tokens scored"].within == "exactly"
    assert (rows["sticky tokens"].published, rows["sticky tokens"].ours) == ("21 [P]", "21")
    assert rows["sticky tokens"].within == "19 in common"
    # The published threshold is not known, but lies between the values of two tokens.
    assert rows["adaptive threshold, Q3 + 0.7·IQR"].published == "between 0.8211 and 0.8313 [C]"
    assert rows["adaptive threshold, Q3 + 0.7·IQR"].within == "inside"


def test_a_page_names_sources_machines_and_what_is_missing(protocol: dict[str, Any]) -> None:
    result = StageResult("sticky", None, "abc", "2 cores", {"torch": "2.13.0"}, 12.3, protocol)
    found = page({"sticky": result})
    assert "| tokens scored | 23,699 [P] | 23,699 | exactly |" in found
    assert "| `sticky` | 2 cores | 12 | 2.13.0, –, – |" in found
    assert f"- [P] {SOURCES['P']}" in found
    assert found.splitlines()[-1].startswith("Not measured yet: u, the mean similarity of the vocabulary; ")
    assert all(len(line) < 400 for line in found.splitlines() if line.startswith("|"))


def test_the_published_shortlist_is_whole() -> None:
    listed = published.published_shortlist()
    assert len({one.token_id for one in listed}) == published.CANDIDATES
    assert sum(one.is_sticky for one in listed) == published.STICKY
    assert min(one.score for one in listed) >= published.CUTOFF
    # np.percentile interpolates: the lowest on the list is the next above it.
    assert min(one.score for one in listed) == pytest.approx(published.CUTOFF, abs=0.01)


def test_published_figures_are_those_of_the_golden_files(shared: Path) -> None:
    def golden(name: str) -> Any:
        return json.loads((shared / "golden" / name).read_text("utf-8"))

    reference = golden("std_reference_all_minilm_l6_v2.json")
    listed = {one.token_id: one for one in published.published_shortlist()}
    assert {one["id"]: one["score"] for one in reference["sticky_score"]["tokens"]}.items() <= {
        token: one.score for token, one in listed.items()
    }.items()
    assert {one["id"]: one["value"] for one in reference["validation_value"]["tokens"]}.items() <= {
        token: one.value for token, one in listed.items()
    }.items()
    assert reference["sticky_score"]["shortlist_size"] == published.CANDIDATES
    assert {name: reference["vocabulary"][name] for name in published.CATEGORIES} == published.CATEGORIES
    definition = golden("std_definition_all_minilm_l6_v2.json")
    assert definition["rho_0"] == published.RHO_0
    assert {one["id"]: (one["rho_prefix"], one["rho_suffix"]) for one in definition["tokens"]} == published.RHO
    socm = golden("socm_layers_all_minilm_l6_v2.json")
    known = {name.removesuffix("_mean"): value for name, value in published.SOCM_FIRST_200.items()}
    assert {name: socm["first_200_lines"][name] for name in known} == known
    renamed = {"contraction": "measured_contraction_SZ_over_SH", "c": "C", "sigma_a": "sigma_a_mean_over_heads"}
    layers = socm["layers_first_100_lines"]
    assert {name: tuple(layers[renamed.get(name, name)]) for name in published.LAYERS} == published.LAYERS
    assert set(STAGES) == {"u", "sticky", "seeds", "definition", "shifts", "socm", "layers", "length", "temperature"}
