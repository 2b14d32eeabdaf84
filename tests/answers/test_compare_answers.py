"""``embaudit compare`` on answers: a store before and after, one store beside another, one answer by its id."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from exported_index import Index
from small_audits import home_at

from embaudit.cli.main import cli


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


@pytest.fixture
def store(own_home: Path, tmp_path: Path) -> Path:
    """Asked twice: of 200 rows, and of 195 of which five hold zeros."""
    vectors = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    place = tmp_path / "rows.npy"
    for rows, zeros in ((200, 0), (195, 5)):
        np.save(place, np.concatenate([vectors[: rows - zeros], np.zeros((zeros, 8), np.float32)]))
        assert "Kept as answer" in run("vectors", place, "--keep").output
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
