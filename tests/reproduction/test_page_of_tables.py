"""docs/reproduction.md is what the committed figures say; how rows are worded, and why two runs differ."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reproduction import published
from benchmarks.reproduction.bench import Bench
from benchmarks.reproduction.command import main, run
from benchmarks.reproduction.compared import SOURCES, compared, rounded_up
from benchmarks.reproduction.kept import FIGURES, StageResult, commit, read
from benchmarks.reproduction.page import PAGE, committed, page
from benchmarks.reproduction.stages import STAGES, sticky
from embaudit.words.errors import UsageError


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


# ---- stages ----


WORDS = ["river", "town", "war", "music", "sea", "ship", "king", "church", "family", "great", "north", "gold", "fire"]


def sentence(place: int) -> str:
    return " ".join(WORDS[(place * step + step) % len(WORDS)] for step in range(1, 5 + place % 6))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real data's folders with few made-up texts."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("std", "wikipedia"):
        (folder / name).mkdir()
    for name, count in (("minilm_scoring_pairs_5.json", 3), ("minilm_verification_pairs_250.json", 6)):
        pairs = [
            {"sentence1": sentence(place), "sentence2": sentence(place + 20), "similarity": "0.5"}
            for place in range(count)
        ]
        (folder / "std" / name).write_text(json.dumps(pairs))
    lines = [f"{sentence(place)} {place}" for place in range(30)]
    (folder / "wikipedia/wiki1m_sample.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture
def bench(tiny_checkpoint: Path, data: Path, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "out", data, "cpu", 12, 1, str(tiny_checkpoint))


def test_a_stage_that_is_there_is_not_run_again(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(bench, ["layers"])
    assert [row["layer"] for row in first["layers"].figures["first_100"]] == [0, 1]
    assert first["layers"].limit == 12
    # Without its data it could not run.
    second = run(replace(bench, data=tmp_path / "nowhere"), ["layers"])
    assert second == first
    assert "layers: is there" in capsys.readouterr().err


def test_the_protocol_continues_where_it_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(bench, ["sticky"])["sticky"].figures
    assert found["scanned"] == 12
    assert found["candidates"] == sum(row["is_shortlisted"] for row in found["tokens"]) >= 1
    # Too few candidates for quartiles.
    assert found["threshold"] is None
    (bench.out / "sticky.json").unlink()
    shards = sorted(Path(bench.staging).glob("sticky/*/reference-*.parquet"))
    assert len(shards) == 2
    shards[0].unlink()
    encoded: list[int] = []

    def counted(encoder: object, inputs: object, tokens: list[str], *others: object) -> object:
        encoded.append(len(tokens))
        return distances(encoder, inputs, tokens, *others)

    from embaudit.measures.sticky import inspect

    distances = inspect.distances
    monkeypatch.setattr(inspect, "distances", counted)
    again = run(bench, ["sticky"])["sticky"].figures
    # The shard that was lost, and no other.
    assert len(encoded) == 1
    assert again == found


def test_other_random_places_change_only_the_random_third(bench: Bench) -> None:
    found = run(bench, ["seeds"])["seeds"].figures
    assert found["tokens"] == 12
    assert found["spread_of_difference"] > 0
    assert 0 <= found["common"] <= min(found["shortlisted"])


@pytest.mark.slow
def test_two_processes_find_the_same(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embaudit.measures.sticky.steps.reference.SCORED_TOKENS_PER_SHARD", 5)
    one = run(bench, ["sticky"])["sticky"].figures
    assert len(list(Path(bench.staging).glob("sticky/*/reference-*.parquet"))) == 4
    two = run(replace(bench, out=tmp_path / "two", processes=2), ["sticky"])["sticky"].figures
    assert two == one


def test_a_trial_is_never_committed(bench: Bench, tmp_path: Path) -> None:
    results = run(bench, ["layers"])
    with pytest.raises(UsageError, match="The figures of layers are of a run with --limit 12"):
        commit(results, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
    whole = {"layers": replace(results["layers"], limit=None)}
    commit(whole, tmp_path / "figures")
    assert read("layers", tmp_path / "figures") == whole["layers"]
    # A row a line, so that a change of one figure is a change of one line.
    written = (tmp_path / "figures/layers.json").read_text("utf-8")
    assert sum('"layer": ' in line and line.strip().startswith("{") for line in written.splitlines()) == 4


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 7}', '{"format": 1, "stage": "layers"}'])
def test_a_broken_result_says_what_to_do(content: str, tmp_path: Path) -> None:
    (tmp_path / "layers.json").write_text(content)
    with pytest.raises(UsageError, match="not the result of a stage") as raised:
        read("layers", tmp_path)
    assert "Delete it" in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "mercury"], "invalid choice: 'mercury'"),
        (["--limit", "0"], "--limit must be at least 1"),
        (["--processes", "0"], "--processes must be at least 1"),
        (["--only", "socm", "--data", "nowhere", "--limit", "3"], "There is no wikipedia/wiki1m_sample.txt in nowhere"),
        (["--device", "tpu"], "no device 'tpu'"),
    ],
)
def test_wrong_options_are_told(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert said in f"{ended.value.code} {capsys.readouterr().err}"
