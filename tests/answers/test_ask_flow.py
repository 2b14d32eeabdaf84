"""Any question as a flow: kept, shown, red under its verdict's name, and not computed twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from commands import run_here
from exported_index import Index
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from embaudit.api.reading import open_warehouse
from embaudit_flows.ask import AnswerOutcome, AnswerProblem, ask

pytestmark = pytest.mark.usefixtures("home")


def asked(name: str, **question: Any) -> AnswerOutcome:
    """The outcome, also of one that is a problem."""
    try:
        return ask(name, question)
    except AnswerProblem as problem:
        return problem.outcome


def rows(home: Path, sql: str) -> list[dict[str, Any]]:
    return open_warehouse(home / "warehouse.duckdb").query(sql).to_dict("records")


def artifact(key: str) -> list[Any]:
    with get_client(sync_client=True) as client:
        return client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])))


def test_three_nights_of_an_index(home: Path, index: Index) -> None:
    question = {"store": str(index.path), "function": str(index.model), "device": "cpu", "with_explanation": False}
    first = asked("vectors", **question)
    assert (first.verdict, first.exit_code, first.is_reused) == ("wholly its own", 0, False)
    assert first.page is not None
    assert "wholly the checkpoint" in Path(first.page).read_text(encoding="utf-8")

    # Nothing has changed: nothing is computed.
    again = asked("vectors", **question)
    assert again == first.model_copy(update={"is_reused": True, "answer_id": again.answer_id})

    index.write(foreign=30)
    with pytest.raises(AnswerProblem) as raised:
        ask("vectors", question)
    assert (raised.value.state, raised.value.exit_code) == ("Not wholly its own", 1)
    assert "answers" in raised.value.kept

    one, stands, two = rows(home, "FROM answer ORDER BY asked")
    assert (stands["computed_id"], stands["seconds"], stands["verdict"]) == (one["answer_id"], 0, one["verdict"])
    assert (one["question_key"] == two["question_key"], one["content_key"] == two["content_key"]) == (True, False)
    # The first content is back, and so is its answer; that is a change of its own.
    index.write()
    assert asked("vectors", **question).verdict == "wholly its own"
    history = rows(home, "SELECT verdict, since FROM answer_history ORDER BY asked")
    assert [row["verdict"] for row in history] == [*["wholly its own"] * 2, "not wholly its own", "wholly its own"]
    assert len({row["since"] for row in history}) == 3
    index.write(foreign=30)
    assert asked("vectors", **question).exit_code == 1
    two = rows(home, "FROM answer ORDER BY asked")[-1]
    changes = rows(home, "FROM answer_history WHERE is_other_verdict AND verdict_before IS NOT NULL ORDER BY asked")
    assert (changes[0]["verdict_before"], changes[0]["verdict"]) == ("wholly its own", "not wholly its own")
    foreign = rows(
        home, "SELECT DISTINCT round(value, 6) AS value, of FROM answer_figure WHERE figure = 'foreign' ORDER BY value"
    )
    assert [(row["value"], row["of"]) for row in foreign] == [(0.0, 120), (0.25, 120)]
    (found,) = rows(home, "SELECT level, sentence FROM answer_finding WHERE level = 'problem' ORDER BY place LIMIT 1")
    assert "30 of 120" in found["sentence"]
    looks = rows(
        home, "SELECT store, foreign_share, copies, change, is_other_verdict FROM index_history ORDER BY asked"
    )
    assert {(look["store"], look["copies"], look["change"]) for look in looks[1:]} == {(str(index.path), 0, 0)}
    assert [round(look["foreign_share"], 2) for look in looks] == [0, 0, 0.25, 0, 0.25]
    assert [look["is_other_verdict"] for look in looks] == [True, False, True, True, True]
    (open_item,) = rows(home, "FROM found_item WHERE what = 'answer'")
    assert (open_item["against"], open_item["item"]) == (str(index.path), "vectors: not wholly its own")
    assert open_item["audit_id"] == two["answer_id"]


def test_a_search_and_a_why_are_kept_with_what_they_found(home: Path, index: Index, tmp_path: Path) -> None:
    golden = tmp_path / "golden.csv"
    golden.write_text(f"query,expect\n{index.texts[3]},chunk-3\n{index.texts[4]},chunk-400\n")
    question = {"store": str(index.path), "function": str(index.model), "device": "cpu", "golden": str(golden)}
    outcome = asked("why", **question)
    assert (outcome.verdict, outcome.exit_code) == ("lost", 1)
    cases = rows(home, "SELECT expected, lost, exact_rank FROM why_case ORDER BY place")
    assert [(case["expected"], case["lost"]) for case in cases] == [("chunk-3", "found"), ("chunk-400", "absent")]
    (lost,) = rows(home, "FROM golden_history")
    assert (lost["expected"], lost["lost"], lost["golden_found"], lost["golden_queries"]) == (
        "chunk-400",
        "absent",
        1,
        2,
    )
    # Another golden file is another question about the same index.
    golden.write_text(f"query,expect\n{index.texts[3]},chunk-3\n")
    assert asked("why", **question).verdict == "found"
    assert len(rows(home, "FROM golden_history")) == 1


def test_an_application_is_asked_every_time_and_its_stages_are_kept(
    home: Path, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = tmp_path / "golden.csv"
    golden.write_text(f"query,expect\n{index.texts[3]},chunk-3\n{index.texts[4]},chunk-4\n")
    (tmp_path / "kept_stages.py").write_text(
        "def search(query):\n    return {'dense': ['chunk-3', 'chunk-4'], 'reranked': ['chunk-4']}\n"
    )
    monkeypatch.chdir(tmp_path)
    question = {"store": str(index.path), "function": str(index.model), "device": "cpu", "golden": str(golden)}
    for _ in range(2):
        outcome = asked("why", **question, stages="python:kept_stages:search")
        assert (outcome.verdict, outcome.exit_code, outcome.is_reused) == ("lost", 1, False)
    cases = rows(
        home, "SELECT DISTINCT expected, lost, coalesce(stage, 'none') AS stage FROM why_case ORDER BY expected"
    )
    assert [tuple(case.values()) for case in cases] == [("chunk-3", "found", "reranked"), ("chunk-4", "found", "none")]
    found = rows(home, "SELECT DISTINCT item, value, of FROM answer_figure WHERE figure = 'found' ORDER BY item")
    assert [tuple(one.values()) for one in found] == [("", 1.0, 2), ("dense", 1.0, 2), ("reranked", 0.5, 2)]
    history = rows(home, "SELECT expected, lost, golden_found, said FROM golden_history")
    assert [(one["expected"], one["lost"], one["golden_found"]) for one in history] == [("chunk-3", "reranked", 2)] * 2
    assert "loses it at the stage reranked: dense has it 1st" in history[0]["said"]


def test_runs_and_artifacts_have_names_of_what_was_asked(home: Path, index: Index) -> None:
    question = {"store": str(index.path)}
    state = ask("vectors", question, return_state=True)
    assert (state.type.value, state.message) == (
        "COMPLETED",
        state.data.line if hasattr(state.data, "line") else state.message,
    )
    vectors = np.zeros((4, 8), np.float32)
    np.save(home / "zeros.npy", vectors)
    state = ask("vectors", {"store": str(home / "zeros.npy")}, return_state=True)
    assert (state.type.value, state.name) == ("FAILED", "Not sound")
    assert "zero" in (state.message or "")


def test_a_password_is_in_no_name_and_no_message(home: Path) -> None:
    state = ask("vectors", {"store": "postgresql://me:hunter2@127.0.0.1:1/db?table=docs"}, return_state=True)
    assert state.type.value == "FAILED"
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(state.state_details.flow_run_id)
    assert "hunter2" not in f"{run.name} {state.message}"
    assert "postgresql://" in run.name


WRONG = {
    "a parameter": ("vectors", {"store": "x", "colour": 1}, "unknown key colour"),
    "a bound": ("why", {"store": "x", "function": "y", "k": 0}, "k: Input should be greater"),
    "a store": ("vectors", {"store": "/nowhere/at/all.parquet"}, "There is no file"),
}


@pytest.mark.parametrize(("name", "question", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_asked_ends_in_words(name: str, question: dict[str, Any], said: str, home: Path) -> None:
    state = ask(name, question, return_state=True)
    assert (state.type.value, state.name) == ("FAILED", "Not answered")
    assert said.lower() in (state.message or "").lower()


def test_a_command_keeps_its_answer_where_it_is_asked_to(home: Path, index: Index, tmp_path: Path) -> None:
    environment = {**os.environ, "EMBAUDIT_HOME": str(home)}
    words = ("vectors", str(index.path), str(index.model), "--device", "cpu", "--no-explanation", "--json")
    plain = run_here(words, environment, tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert rows(home, "FROM answer") == []
    for more, variables in ((("--keep",), {}), ((), {"EMBAUDIT_KEEP": "true"})):
        kept = run_here((*words, *more), environment | variables, tmp_path)
        assert kept.returncode == 0, kept.stderr
        assert "Kept as answer" in kept.stderr
    first, answer = rows(home, "FROM answer ORDER BY asked")
    assert first["content_key"] == answer["content_key"]
    assert (answer["verdict"], answer["line"]) == ("wholly its own", json.loads(plain.stdout)["line"])
    assert (home / "reports" / "answers" / f"{answer['answer_id']}.html").exists()
    # The flow, asked the same, computes nothing.
    question = {"store": str(index.path), "function": str(index.model), "device": "cpu", "with_explanation": False}
    assert asked("vectors", **question).is_reused
    shown = run_here(("query", "answers", "--format", "json"), environment, tmp_path)
    assert [row["line"] for row in json.loads(shown.stdout)] == [answer["line"]]


def test_rows_that_went_stay_red_until_they_are_back_or_accepted(home: Path, tmp_path: Path) -> None:
    place, whole = tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)

    def night(rows: int) -> AnswerOutcome:
        np.save(place, whole[:rows])
        return asked("vectors", store=str(place))

    assert [night(200).verdict, night(190).verdict] == ["sound", "sound"], "fewer than a tenth"
    lost = night(150)
    assert (lost.verdict, lost.exit_code) == ("rows lost", 1)
    assert lost.line.startswith("50 of 200 rows are gone (25.0%) since "), "of the most that it had"
    assert lost.page is not None
    assert "50 of 200 rows are gone" in Path(lost.page).read_text(encoding="utf-8")
    # Nothing changed, and less than a tenth more: it is still compared with the night before it fell.
    assert asked("vectors", store=str(place)).is_reused
    assert night(149).verdict == "rows lost"
    (item,) = rows(home, "FROM found_item")
    assert item["item"] == "vectors: rows lost"
    accepted = run_here(
        ("accept", str(place), "--reason", "cleaned up"), {**os.environ, "EMBAUDIT_HOME": str(home)}, tmp_path
    )
    assert accepted.returncode == 0, accepted.stderr
    assert night(148).verdict == "sound", "what was accepted is what it is compared with"
    assert night(120).verdict == "rows lost"
    # What was well after what was accepted is what counts, also where a few go every night.
    assert [night(rows).verdict for rows in (200, 192, 184, 176)] == [*["sound"] * 3, "rows lost"]


def test_recall_beyond_its_interval_is_red_though_it_is_enough(home: Path, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(2_000, 24)).astype(np.float32)
    graph = faiss.IndexHNSWFlat(24, 16)
    graph.add(vectors)
    question = {"store": str(tmp_path / "rows.faiss"), "count": 100, "rows": 100, "recall": 0.3}

    def night(effort: int) -> AnswerOutcome:
        graph.hnsw.efSearch = effort
        faiss.write_index(graph, question["store"])
        return asked("search", **question)

    assert night(300).verdict == "finds what it holds"
    fell = night(10)
    assert (fell.verdict, fell.exit_code) == ("recall fell", 1)
    assert "Recall@10 is " in fell.line
    (finding,) = rows(home, "FROM answer_finding WHERE name = 'recall_fell'")
    figure = rows(home, "FROM answer_figure WHERE figure = 'recall_at_10' AND item = '' ORDER BY value")[0]
    assert (finding["value"], finding["low"], finding["high"]) == (figure["value"], figure["low"], figure["high"])
    assert night(300).verdict == "finds what it holds"


@pytest.mark.slow
def test_recall_that_fell_is_red_and_has_a_history(home: Path, tmp_path: Path) -> None:
    """The same rows in a graph that was built with too few links: no row is lost, and the search does not find them."""
    rows_of = np.random.default_rng(0).normal(size=(3_000, 32)).astype(np.float32)

    def write(links: int, effort: int) -> None:
        graph = faiss.IndexHNSWFlat(32, links)
        graph.hnsw.efConstruction = effort
        graph.hnsw.efSearch = effort
        graph.add(rows_of)
        faiss.write_index(graph, str(tmp_path / "rows.faiss"))

    question = {"store": str(tmp_path / "rows.faiss"), "count": 60, "rows": 200}
    write(32, 200)
    good = asked("search", **question)
    assert (good.verdict, good.exit_code) == ("finds what it holds", 0)
    write(2, 4)
    fell = asked("search", **question)
    assert (fell.verdict, fell.exit_code) == ("does not find what it holds", 1)
    history = rows(home, "FROM recall_history WHERE setting = '' ORDER BY asked")
    assert [row["recall"] >= 0.95 for row in history] == [True, False]
    assert history[0]["change"] is None or np.isnan(history[0]["change"])
    assert history[1]["change"] == pytest.approx(history[1]["recall"] - history[0]["recall"])
    (change,) = rows(home, "FROM answer_history WHERE is_other_verdict AND verdict_before IS NOT NULL")
    assert (change["verdict_before"], change["verdict"]) == (good.verdict, fell.verdict)
