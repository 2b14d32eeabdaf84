"""``embaudit compare`` on answers: a store before and after, one store beside another, one answer by its id."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from declared_rows import NOON, rows_of
from exported_index import Index
from hypothesis import given
from hypothesis import strategies as st
from small_audits import home_at

from embaudit.cli.main import cli
from embaudit.questions.report import AnswerFigure
from embaudit.warehouse.answers import EarlierFigure, falls
from embaudit.warehouse.publish import run_write
from embaudit.warehouse.query import run_query
from embaudit.warehouse.write import replace_rows


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)


def page_of(*words: str | Path) -> str:
    """As it is printed, whatever the width."""
    return " ".join(run("compare", *words).stdout.split())


def compared(*words: str | Path) -> dict[str, Any]:
    done = run("compare", *words, "--json")
    assert done.exception is None, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.fixture
def own_home(tmp_path: Path, empty_once: Path) -> Iterator[Path]:
    with home_at(tmp_path / "home", empty_once) as home:
        yield home


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, empty_once: Path) -> tuple[Path, Path]:
    """A store that was asked twice, of 200 rows, and of 195 of which five hold zeros; and the home that has this."""
    vectors = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    place = tmp_path_factory.mktemp("asked") / "rows.npy"
    with home_at(place.parent / "home", empty_once) as home:
        for rows, zeros in ((200, 0), (195, 5)):
            np.save(place, np.concatenate([vectors[: rows - zeros], np.zeros((zeros, 8), np.float32)]))
            assert "Kept as answer" in run("vectors", place, "--keep").output
    return place, home


@pytest.fixture
def store(asked: tuple[Path, Path], own_home: Path) -> Path:
    place, home = asked
    shutil.copytree(home, own_home, dirs_exist_ok=True)
    return place


def test_a_store_beside_what_it_was(store: Path) -> None:
    said = compared("previous", store)
    (one,) = said["answers"]
    assert (one["before"]["verdict"], one["now"]["verdict"], one["otherwise"]) == ("sound", "not sound", [])
    moved = {row["figure"]: (row["predecessor_value"], row["value"], row["change"]) for row in one["figures"]}
    assert moved["zeros"] == (0, 5, "worse")
    assert moved["rows"] == (200, 195, ""), "fewer rows may be meant"
    (zeros,) = [row for row in one["findings"] if row["name"] == "zeros"]
    assert (zeros["before"], zeros["now"]) == ("", "problem")
    page = page_of("previous", store)
    assert "not sound; it was: sound" in page
    assert "1 got worse" in page


def test_two_answers_by_their_ids_and_the_page(store: Path, tmp_path: Path) -> None:
    one = compared("previous", store)["answers"][0]
    ids = [one[name]["answer_id"] for name in ("before", "now")]
    assert compared(*ids)["answers"][0]["figures"] == one["figures"]
    back = compared(*reversed(ids))["answers"][0]["figures"]
    assert {row["change"] for row in back} == {"", "better"}, "of a store without texts no row has one"
    done = run("compare", *ids, "--out", tmp_path / "page.html")
    assert done.exception is None
    assert "zeros" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_one_store_beside_another_says_what_was_asked_otherwise(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.npy"
    np.save(other, np.random.default_rng(1).normal(size=(50, 8)).astype(np.float32))
    run("vectors", other, "--keep", "--seed", "3")
    run("search", other, "--keep")
    said = compared(store, other)
    (one,) = said["answers"]
    assert one["otherwise"] == ["seed"]
    assert (one["before"]["subject"], one["now"]["subject"]) == (str(store), str(other))
    assert [side["asks"] for side in said["not_compared"]] == ["search"]
    page = page_of(store, other)
    assert "it was asked otherwise: seed" in page
    assert "no other answer to this question" in page


def test_golden_queries_that_were_found(own_home: Path, index: Index, tmp_path: Path) -> None:
    golden = tmp_path / "golden.csv"
    golden.write_text("query,expect\n" + "".join(f"{index.texts[n]},chunk-{n}\n" for n in (3, 4)))
    words = ("why", index.path, index.model, "--golden", golden, "--device", "cpu", "--keep")
    run(*words)
    index.write(foreign=4)
    run(*words)
    (one,) = compared("previous", index.path)["answers"]
    lost = {row["expected"]: (row["before"], row["now"]) for row in one["cases"]}
    assert lost
    assert {before for before, _ in lost.values()} == {"found"}
    assert all(row["sentence"] for row in one["cases"])
    assert f"{len(lost)} of its searches are lost that were found" in page_of("previous", index.path)


def test_a_row_that_a_stage_of_the_application_loses_since(
    own_home: Path, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "changed_stages.py").write_text(
        "import json, pathlib\ndef search(query):\n    return json.loads(pathlib.Path('stages.json').read_text())\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ("why", index.path, index.model, "--query", index.texts[3], "--expect", "chunk-3", "--device", "cpu")
    for shown in (["chunk-3"], ["chunk-4"]):
        (tmp_path / "stages.json").write_text(json.dumps({"dense": ["chunk-4", "chunk-3"], "shown": shown}))
        run(*words, "--stages", "python:changed_stages:search", "--keep")
    (one,) = compared("previous", index.path)["answers"]
    ((before, now, sentence),) = [(row["before"], row["now"], row["sentence"]) for row in one["cases"]]
    assert (before, now) == ("found", "shown")
    assert "loses it at the stage shown: dense has it 2nd" in sentence
    moved = {(row["figure"], row["item"]): row["delta"] for row in one["figures"]}
    assert (moved["found", "dense"], moved["found", "shown"], moved["found", ""]) == (0, -1, 0)


def test_what_a_check_scored_is_kept(own_home: Path, models: tuple[Path, Path]) -> None:
    from embaudit.api.reading import open_warehouse

    folder = models[0].parent / "served"
    for model in models:
        shutil.copytree(model, folder, dirs_exist_ok=True)
        run("check", folder, "--keep")
    kept = open_warehouse(own_home / "warehouse.duckdb").query("SELECT DISTINCT figure FROM answer_figure")
    assert {"Spearman's ρ", "nDCG@10", "auc", "nDCG@10, BM25"} <= set(kept["figure"])
    (one,) = compared("previous", folder)["answers"]
    words = [row for row in one["figures"] if row["figure"] == "nDCG@10, BM25"]
    assert [row["delta"] for row in words] == [0]
    assert any(row["delta"] for row in one["figures"] if row["figure"] == "Spearman's ρ")


def test_what_has_neither_audits_nor_answers(store: Path) -> None:
    done = run("compare", "previous", "./nothing")
    assert "There is no" in str(done.exception) or "no audit" in str(done.exception)


# ---- what of an answer is worse than before, and what was accepted of it ----


THEN = datetime(2026, 11, 27, 2, tzinfo=UTC)
SHARE = st.floats(0, 1)

CASES = {
    "recall, intervals apart": ("recall_at_10", "", (0.6, 0.55, 0.65), (0.9, 0.85, 0.95), "recall_fell"),
    "recall, intervals that meet": ("recall_at_10", "", (0.8, 0.75, 0.85), (0.9, 0.85, 0.95), None),
    "recall that rose": ("recall_at_10", "", (0.9, 0.85, 0.95), (0.6, 0.55, 0.65), None),
    "recall under the filter": ("recall_at_10", "filtered", (0.6, 0.55, 0.65), (0.9, 0.85, 0.95), "recall_fell"),
    "a setting that was tried": ("recall_at_10", "efSearch=8", (0.6, 0.55, 0.65), (0.9, 0.85, 0.95), None),
    "a tenant": ("recall_at_10", "for acme", (0.1, 0.05, 0.15), (0.9, 0.85, 0.95), None),
    "all of 100 found, then .96": ("recall_at_10", "", (0.95, 0.94, 0.96), (1.0, None, None), "recall_fell"),
    "all of 100 found, then .98": ("recall_at_10", "", (0.97, 0.96, 0.98), (1.0, None, None), None),
    "none of 100 found any more": ("recall_at_10", "", (0.0, None, None), (0.9, 0.85, 0.95), "recall_fell"),
    "a tenth of the rows": ("rows", "", (90, None, None), (100, None, None), "rows_gone"),
    "less than a tenth": ("rows", "", (91, None, None), (100, None, None), None),
    "all rows": ("rows", "", (0, None, None), (100, None, None), "rows_gone"),
    "rows that came": ("rows", "", (200, None, None), (100, None, None), None),
    "none then": ("rows", "", (0, None, None), (0, None, None), None),
    "another figure": ("copies", "", (0, None, None), (100, None, None), None),
}


@pytest.mark.parametrize(("figure", "item", "now", "was", "name"), CASES.values(), ids=CASES)
def test_what_is_worse(
    figure: str,
    item: str,
    now: tuple[float, float | None, float | None],
    was: tuple[float, float | None, float | None],
    name: str | None,
) -> None:
    found = list(
        falls([AnswerFigure(figure, now[0], item, *now[1:], 100)], {(figure, item): EarlierFigure(*was, 100, THEN)})
    )
    assert [finding.name for finding in found] == ([] if name is None else [name])
    for finding in found:
        assert finding.level == "problem"
        assert "2026-11-27" in finding.sentence
        assert finding.advice


def test_what_nothing_is_known_of_is_not_worse() -> None:
    assert not list(falls([AnswerFigure("rows", 0), AnswerFigure("recall_at_10", 0.0, low=0.0, high=0.1)], {}))


@given(st.lists(SHARE, min_size=3, max_size=3).map(sorted), st.lists(SHARE, min_size=3, max_size=3).map(sorted))
def test_recall_never_falls_both_ways_nor_beside_itself(one: list[float], other: list[float]) -> None:
    def fell(now: list[float], was: list[float]) -> bool:
        before = {("recall_at_10", ""): EarlierFigure(was[1], was[0], was[2], None, THEN)}
        return bool(list(falls([AnswerFigure("recall_at_10", now[1], low=now[0], high=now[2])], before)))

    assert not fell(one, one)
    assert not (fell(one, other) and fell(other, one))
    assert fell(one, other) == (one[2] < other[0])


# ---- what was accepted ----


@pytest.mark.parametrize(
    ("nights", "first"),
    [
        (("a b", "a b"), "n0"),
        (("a b", "a"), "n0"),
        (("a", "a b"), "n1"),
        (("a b", "c"), "n1"),
        (("a b", "a", "a b"), "n2"),
    ],
)
def test_less_is_no_other_problem_and_more_is(
    empty_once: Path, tmp_path: Path, nights: tuple[str, ...], first: str
) -> None:
    warehouse = Path(shutil.copy(empty_once, tmp_path / "warehouse.duckdb"))
    rows = rows_of(
        "answer",
        "answer_id computed_id problems asked",
        *((f"n{night}", f"n{night}", problems, NOON + timedelta(days=night)) for night, problems in enumerate(nights)),
        **{"question_key": "q", "asks": "why", "verdict": "lost", "level": "problem", "exit_code": 1},
    )
    run_write(warehouse, 5.0, lambda connection: replace_rows(connection, "answer", rows))
    found = run_query(warehouse, "SELECT first_answer_id FROM answer_history ORDER BY asked").rows
    assert found[-1] == (first,)
