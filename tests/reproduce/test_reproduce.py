"""Published scores: reached as declared, by another reading that is named, or by none; on the packaged checkpoint."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from commands import run_here
from judged_collections import write_collection
from some_rows import mostly_slow

import embaudit
from embaudit.checkpoint import AskedPrompts, Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.corpora.scores.formats import Score
from embaudit.measures.quality.material import sample_material
from embaudit.questions.reproduce.readings import PublishedScore, ScoredReading
from embaudit.questions.reproduce.report import EXACTLY, ReproduceReport, findings_of
from embaudit.words.errors import CorpusError, UsageError

PACKAGED = "packaged:all-MiniLM-L6-v2"
MATERIAL = sample_material()
PAIRS = MATERIAL.pairs[0].first(50)
DOCUMENTS = MATERIAL.collections[0].documents[:24]
# Some words of a document's end, lower-cased: not so easy that every reading finds all.
QUERIES = [" ".join(text.lower().split()[-5:-1]) for text in DOCUMENTS[:16]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs with scores, and a collection in BEIR's layout, each called as a task is."""
    place = tmp_path_factory.mktemp("reproduce")
    with (place / "MyPairs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("sentence1", "sentence2", "score"))
        writer.writerows(zip(PAIRS.firsts, PAIRS.seconds, PAIRS.scores, strict=True))
    write_collection(place / "my_search", DOCUMENTS, QUERIES)
    return place


def result(place: Path, task: str, *scores: Mapping[str, Any]) -> Path:
    """A file as MTEB writes it."""
    by_split: dict[str, list[Mapping[str, Any]]] = {}
    for one in scores:
        by_split.setdefault(str(one.get("split", "test")), []).append({"hf_subset": "default", **one})
    path = place / f"{task}.json"
    path.write_text(json.dumps({"task_name": task, "mteb_version": "1.12.0", "scores": by_split}))
    return path


def vectors(checkpoint: Checkpoint, texts: list[str], kind: Any = "text", before: str = "") -> np.ndarray:
    found = Encoder(checkpoint.reading(kind)).encode_texts([before + text for text in texts]).astype(np.float64)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """ρ of the cosines with the scores, by SciPy."""
    return float(scipy.stats.spearmanr((first * second).sum(axis=1), PAIRS.scores).statistic)


def ndcg(queries: np.ndarray, documents: np.ndarray) -> float:
    """Where query i has document i alone: 1/log2(1 + its rank), 0 beyond the tenth."""
    cosines = queries @ documents.T
    ranks = (cosines > np.diag(cosines)[:, None]).sum(axis=1) + 1
    return float(np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0).mean())


BGE = "Represent this sentence for searching relevant passages: "
# By what reaches it: what is asked for beside the data, and how the score that was published was made.
OF_PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cls pooling": ({}, {"pooling": "cls"}),
    "the pair of prompts of Nomic": ({}, {"prompts": AskedPrompts("search_query: ")}),
    "a limit of 128 tokens": ({"max_length": 12}, {"max_length": 128}),
    "text without prompts": ({"prompt": "zebra zebra zebra: "}, {}),
    "mean pooling and text without prompts": ({"pooling": "cls", "prompt": "passage: "}, {}),
}


def of(folder: Path, name: str, score: float, **asked: Any) -> ReproduceReport:
    file = result(folder, name, {"main_score": score})
    given = {"pairs": (folder / "MyPairs.csv",)} if name == "MyPairs" else {"data": (folder / "my_search",)}
    return embaudit.reproduce(PACKAGED, mteb=(file,), **{**given, **asked})


@pytest.fixture(scope="module")
def declared(minilm: Checkpoint) -> float:
    return spearman(*(vectors(minilm, [*side]) for side in (PAIRS.firsts, PAIRS.seconds)))


def test_what_was_published_is_reached(folder: Path, declared: float) -> None:
    report = of(folder, "MyPairs", declared)
    assert (report.verdict, report.exit_code, len(report.readings)) == ("reproduced", 0, 1)
    assert report.readings[0].scores == {str(folder / "MyPairs.csv"): pytest.approx(declared, abs=1e-6)}
    (finding,) = report.findings
    assert (finding.name, finding.level, finding.value) == ("published", "ok", pytest.approx(0, abs=1e-6))
    assert finding.sentence == (
        f"Spearman's ρ of MyPairs (test) was published as {declared:.4f}, and is {declared:.4f} as declared here, on "
        "50 pairs."
    )


@pytest.mark.parametrize("way", [-1, 1])
def test_the_limit_of_what_is_reached(way: int) -> None:
    """.002; .0002 for a reading that differs in two things, the furthest task deciding."""

    def reaches(apart: float, *, is_double: bool = False) -> bool:
        data = [replace(PAIRS, name="a"), replace(PAIRS, name="b")]
        published = [PublishedScore(Score("", "", one.name, "test", "default", 0.5, None, "", ""), one) for one in data]
        reading = ScoredReading("one", "file", {"a": 0.5, "b": 0.5 + way * apart}, is_double)
        return ReproduceReport("", "", (*published,), (reading,)).reaches(reading)

    assert (reaches(0.00199), reaches(0.00201)) == (True, False)
    assert (reaches(0.00019, is_double=True), reaches(0.00021, is_double=True)) == (True, False)


@pytest.mark.parametrize("reading", mostly_slow(OF_PAIRS, ["cls pooling"]))
def test_the_reading_that_was_published_is_named(folder: Path, minilm: Checkpoint, reading: str) -> None:
    asked, options = OF_PAIRS[reading]
    options = {name: value for name, value in options.items() if name != "prompts"} | {
        "prompts": options.get("prompts", AskedPrompts())
    }
    other = load_checkpoint(PACKAGED, replace(LoadOptions("cpu", "float32"), **options))
    score = spearman(*(vectors(other, [*side]) for side in (PAIRS.firsts, PAIRS.seconds)))
    report = of(folder, "MyPairs", score, **asked)
    assert (report.verdict, report.exit_code) == ("another reading", 1)
    nearest = report.reaching[0]
    assert (nearest.name, report.furthest(nearest) < EXACTLY) == (reading, True)
    assert reading in report.line
    finding = next(one for one in report.findings if one.name == "reading")
    assert f"{nearest.scores[str(folder / 'MyPairs.csv')]:.4f} where {score:.4f} was published" in finding.sentence
    assert nearest.file in finding.advice


@pytest.mark.slow
def test_a_task_s_prompt_that_the_checkpoint_declares_and_does_not_apply(
    folder: Path, minilm: Checkpoint, tmp_path: Path
) -> None:
    copy = shutil.copytree(minilm.resolved.folder, tmp_path / "copy")
    settings = copy / "config_sentence_transformers.json"
    prompt = "task: sentence similarity | query: "
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "prompts": {"STS": prompt}}))
    score = spearman(*(vectors(minilm, [*side], before=prompt) for side in (PAIRS.firsts, PAIRS.seconds)))
    file = result(folder, "MyPairs", {"main_score": score})
    report = embaudit.reproduce(copy, mteb=(file,), pairs=(folder / "MyPairs.csv",))
    assert (report.verdict, report.reaching[0].name) == ("another reading", "the declared prompt 'STS'")


@pytest.mark.parametrize("before", mostly_slow(["", BGE], 1))
def test_ndcg_with_and_without_a_query_s_prompt(folder: Path, minilm: Checkpoint, before: str) -> None:
    score = ndcg(vectors(minilm, QUERIES, "query", before), vectors(minilm, [*DOCUMENTS], "document"))
    report = of(folder, "MySearch", score)
    assert report.verdict == ("another reading" if before else "reproduced")
    assert report.reaching[0].name == ("the query prompt of BGE" if before else "as declared")
    assert report.readings[0].scores[str(folder / "my_search")] == pytest.approx(
        ndcg(vectors(minilm, QUERIES, "query"), vectors(minilm, [*DOCUMENTS], "document")), abs=1e-6
    )


def test_two_tasks_are_told_apart_by_their_names(folder: Path, minilm: Checkpoint, declared: float) -> None:
    place = folder / "results"
    place.mkdir()
    found = ndcg(vectors(minilm, QUERIES, "query"), vectors(minilm, [*DOCUMENTS], "document"))
    result(place, "MyPairs", {"main_score": declared, "cosine_spearman": declared})
    result(place, "MySearch", {"main_score": found, "ndcg_at_10": found})
    result(place, "Classification", {"main_score": 0.5, "accuracy": 0.5})
    report = embaudit.reproduce(PACKAGED, mteb=(place,), pairs=(folder / "MyPairs.csv",), data=(folder / "my_search",))
    assert (report.verdict, report.line) == ("reproduced", "As declared, it reproduces 2 published scores.")
    assert [(one.part, one.score.score) for one in report.published] == [
        ("MyPairs (test)", declared),
        ("MySearch (test)", found),
    ]
    made = report.as_json()
    assert [one["declared"] for one in made["published"]] == [*report.readings[0].scores.values()]
    figures = {(one.figure, one.item): one.value for one in report.answer_figures()}
    assert figures["published", "MySearch (test)"] == found
    assert figures["nDCG@10", "MySearch (test)"] == pytest.approx(found, abs=1e-6)


def test_all_tasks_must_be_reached_and_the_nearest_reading_is_told() -> None:
    data = [replace(PAIRS, name=name) for name in "ab"]
    published = [PublishedScore(Score("", "", one.name, "test", "default", 0.5, None, "", ""), one) for one in data]
    declared, near = (
        ScoredReading("as declared", "", {"a": 0.5, "b": 0.6}),
        ScoredReading("cls pooling", "f", {"a": 0.51, "b": 0.5}),
    )
    report = ReproduceReport("", "", (*published,), (declared, near))
    assert (report.verdict, report.exit_code, report.reaching) == ("not reproduced", 1, [])
    assert report.line == "It does not reproduce 2 published scores, as declared or in any of 1 other readings."
    ends = {one.name + one.sentence[16:17]: (one.level, one.value) for one in findings_of(report)}
    assert ends["publisheda"] == ("ok", 0.0)
    assert ends["publishedb"] == ("problem", pytest.approx(-0.1))
    (said,) = [one.sentence for one in findings_of(report) if one.name == "reading"]
    assert "the nearest is cls pooling (0.5100 where 0.5000 was published, 0.5000 where 0.5000 was published)" in said


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "nothing to score": ({"pairs": (), "data": ()}, UsageError, "nothing to score"),
    "a task of another kind": ({"scores": [{"main_score": 0.5, "accuracy": 0.5}]}, UsageError, "No similarity task"),
    "several splits": (
        {"scores": [{"main_score": 0.5, "split": "dev"}, {"main_score": 0.5, "split": "train"}]},
        UsageError,
        "several scores .dev, default; train, default",
    ),
    "several subsets": (
        {"scores": [{"main_score": 0.5, "hf_subset": "en-en"}, {"main_score": 0.6, "hf_subset": "de-de"}]},
        UsageError,
        "several scores",
    ),
    "a part that is not there": ({"part": "fr-fr"}, UsageError, "MyPairs has no part 'fr-fr'"),
    "an address": ({"checkpoint": "http://localhost:1"}, UsageError, "no files that are seen here"),
    "pairs without a score": ({"pairs": "empty.csv"}, CorpusError, "empty.csv"),
    "no such file": ({"mteb": "gone.json"}, UsageError, "gone.json"),
    "not a result": ({"mteb": "other.json"}, UsageError, "neither a list of scores nor an MTEB result"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_compared_is_refused(folder: Path, case: str) -> None:
    given, error, said = REFUSED[case]
    given = dict(given)
    (folder / "empty.csv").write_text("sentence1,sentence2,score\na b,c d,\n")
    (folder / "other.json").write_text('{"a": 1}')
    scores = given.pop("scores", [{"main_score": 0.5, "cosine_spearman": 0.5}])
    file = result(folder, "MyPairs", *scores)
    asked = {"checkpoint": PACKAGED, "mteb": file, "pairs": folder / "MyPairs.csv", **given}
    for name in ("mteb", "pairs"):
        asked[name] = tuple([folder / asked[name]] if asked[name] else [])
    with pytest.raises(error, match=said):
        embaudit.reproduce(asked.pop("checkpoint"), **asked)


def test_a_part_is_chosen_by_its_split_or_subset(folder: Path, declared: float) -> None:
    scores = [{"main_score": 0.1, "hf_subset": "de-de"}, {"main_score": declared, "hf_subset": "en-en"}]
    file = result(folder, "MyPairs", *scores)
    report = embaudit.reproduce(PACKAGED, mteb=(file,), pairs=(folder / "MyPairs.csv",), part="en-en")
    assert (report.verdict, report.published[0].part) == ("reproduced", "MyPairs (test, en-en)")


def test_the_command(folder: Path, tmp_path: Path, declared: float) -> None:
    file = result(folder, "MyPairs", {"main_score": declared})
    given = ("--mteb", str(file), "--pairs", str(folder / "MyPairs.csv"), "--out", str(tmp_path / "page.html"))
    ran = run_here(("reproduce", PACKAGED, *given), {"HOME": str(tmp_path), "EMBAUDIT_HOME": str(tmp_path)}, tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = "As declared, it reproduces the published score of MyPairs (test)."
    assert said in " ".join(ran.stdout.split())
    page = (tmp_path / "page.html").read_text()
    assert said in page
    assert f"{declared:.4f}" in page


@pytest.mark.slow
def test_half_precision_moves_a_score_by_less_than_the_limit(shared: Path) -> None:
    """The figures of docs/reproduce.md: ρ on STSBenchmark in three precisions."""
    with (shared / "data" / "sts" / "stsb" / "stsb-en-test.csv").open(newline="") as file:
        firsts, seconds, wanted = zip(*csv.reader(file), strict=True)
    found = {}
    for dtype in ("float32", "bfloat16", "float16"):
        checkpoint = load_checkpoint(PACKAGED, LoadOptions("cpu", dtype))
        cosines = (vectors(checkpoint, [*firsts]) * vectors(checkpoint, [*seconds])).sum(axis=1)
        found[dtype] = float(scipy.stats.spearmanr(cosines, [float(one) for one in wanted]).statistic)
    assert found["float32"] == pytest.approx(0.8203, abs=1e-4)
    assert all(abs(one - found["float32"]) < EXACTLY for one in found.values())


@pytest.mark.slow
def test_scores_that_mteb_published_of_the_packaged_checkpoint(shared: Path, tmp_path: Path) -> None:
    """SciFact and STSBenchmark, whole, as its results of all-MiniLM-L6-v2 have them."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "SciFact").symlink_to(shared / "data" / "retrieval" / "scifact")
    (tmp_path / "data" / "STSBenchmark.csv").symlink_to(shared / "data" / "sts" / "stsb" / "stsb-en-test.csv")
    result(tmp_path, "SciFact", {"main_score": 0.64508, "ndcg_at_10": 0.64508})
    result(tmp_path, "STSBenchmark", {"main_score": 0.8203, "cosine_spearman": 0.8203})
    report = embaudit.reproduce(
        PACKAGED,
        mteb=(tmp_path / "SciFact.json", tmp_path / "STSBenchmark.json"),
        pairs=(tmp_path / "data" / "STSBenchmark.csv",),
        data=(tmp_path / "data" / "SciFact",),
    )
    assert report.verdict == "reproduced"
    assert report.furthest(report.readings[0]) < EXACTLY
