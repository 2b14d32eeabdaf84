"""Golden queries as a measure: ranks by loops, in a check, against a base, of a served function, in an audit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure_alone import run_of, tables_of
from tiny import tiny_bert

import embaudit
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.embedders.opened import open_function
from embaudit.measures.quality.material import Collection, Material, golden_collection
from embaudit.measures.quality.scores import SEED, CollectionScorer, answer_ranks
from embaudit.measures.run import Run
from embaudit.questions.check.check import check
from embaudit.questions.check.served import check_served
from embaudit.statistics import resample_clusters
from embaudit.steps.corpora import stage_source
from embaudit.words.errors import UsageError

DOCUMENTS = [f"river {place} runs past town {place * 7 % 30} and mill {place * 11 % 30}" for place in range(40)]
ASKED = [(f"town {place * 7 % 30} mill {place * 11 % 30}", {place: 1.0}, frozenset()) for place in range(12)]


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_ranks_are_those_of_loops(seed: int, ties: bool) -> None:
    generator = np.random.default_rng(seed)
    similarities = generator.normal(size=(5, 9)).round(1 if ties else 8)
    relevant = tuple({int(p): 1.0 for p in generator.choice(9, generator.integers(1, 4), False)} for _ in range(5))
    own = tuple(frozenset({int(generator.integers(9))} - grades.keys()) for grades in relevant)
    collection = Collection("golden", ("q",) * 5, ("d",) * 9, relevant, own)

    ranks, places = answer_ranks(collection, similarities)

    for query in range(5):
        above = [
            sum(
                similarities[query, other] > similarities[query, answer]
                for other in range(9)
                if other not in own[query]
            )
            for answer in relevant[query]
        ]
        assert ranks[query] == min(above) + 1
        assert places[query] in relevant[query]


def test_the_share_that_is_found_in_every_resample_is_that_of_the_repeated_queries() -> None:
    similarities = np.random.default_rng(0).normal(size=(len(ASKED), len(DOCUMENTS)))
    collection = golden_collection("golden", DOCUMENTS, ASKED)
    score = CollectionScorer(collection, 20).found(similarities)
    found = [sorted(row, reverse=True).index(row[place]) < 10 for place, row in enumerate(similarities)]
    assert score.value == pytest.approx(np.mean(found))
    rows = resample_clusters(np.arange(len(ASKED)), 20, SEED)
    assert score.resampled == pytest.approx([np.mean(np.repeat(found, row)) for row in rows])


def test_answers_stay_and_others_are_drawn() -> None:
    few = golden_collection("golden", DOCUMENTS, ASKED, most=20)
    assert len(few.documents) == 20
    assert [few.documents[next(iter(grades))] for grades in few.relevant] == DOCUMENTS[: len(ASKED)]
    assert len(golden_collection("golden", DOCUMENTS, ASKED, most=3).documents) == len(ASKED)


def ranks_of(folder: Path, collection: Collection) -> list[int]:
    """Rank of each query's only answer by cosine, by a loop."""
    checkpoint = load_checkpoint(str(folder))
    sides = (("query", collection.queries), ("document", collection.documents))
    queries, documents = (Encoder(checkpoint.reading(kind)).encode_texts(texts) for kind, texts in sides)  # type: ignore[arg-type]
    found = []
    for row, (answer,) in zip(queries, collection.relevant, strict=True):
        cosines = [float(row @ one / np.linalg.norm(row) / np.linalg.norm(one)) for one in documents]
        found.append(1 + sum(cosine > cosines[answer] for cosine in cosines))
    return found


@pytest.mark.slow
def test_a_check_names_what_is_not_found_and_what_a_tuning_lost(tmp_path: Path) -> None:
    tuned, base = tiny_bert(tmp_path / "tuned", seed=1), tiny_bert(tmp_path / "base", seed=2)
    golden = golden_collection("golden.csv", DOCUMENTS, ASKED)
    report = check(str(tuned), material=Material(golden=(golden,)), base=str(base))

    ranks, before = ranks_of(tuned, golden), ranks_of(base, golden)
    data = next(one for one in report.figures["data"] if one["kind"] == "golden")
    assert [one["rank"] for one in data["ranks"]] == ranks
    own = next(one for one in report.findings if one.name == "golden")
    assert own.value == np.mean([rank <= 10 for rank in ranks])
    assert f"({max(ranks)})" in own.sentence
    beside = next(one for one in report.findings if one.name == "golden_beside_the_base")
    lost = [golden.queries[n] for n in range(len(ASKED)) if before[n] <= 10 < ranks[n]]
    assert sorted(one["query"] for one in report.figures["change"]["golden"][0]["lost"]) == sorted(lost)
    assert beside.level == ("look" if lost else "ok")
    assert (beside.value, beside.low, beside.high) == (own.value, own.low, own.high)
    # Golden queries are no data set that a tuning is for.
    assert all(one["kind"] != "golden" for one in report.figures["change"]["data"] if "kind" in one)


def test_a_function_without_files_is_asked_too(tmp_path: Path) -> None:
    """An object finds what it turns into the same words."""

    def encode(texts: list[str]) -> np.ndarray:
        words = [[word for word in text.split() if word.isdigit()] for text in texts]
        rows = np.full((len(texts), 64), 0.01)
        for row, some in zip(rows, words, strict=True):
            row[[int(word) % 64 for word in some]] += 1
        return rows

    golden = golden_collection("golden.csv", DOCUMENTS, ASKED)
    with open_function(encode, LoadOptions()) as function:
        report = check_served(function, Material(golden=(golden,)))
    finding = next(one for one in report.findings if one.name == "golden")
    assert finding.level == "ok"
    assert finding.value == 1


def test_an_audit_has_a_row_that_a_gate_can_hold_to(tmp_path: Path) -> None:
    folder = tmp_path / "golden"
    folder.mkdir()
    rows = [json.dumps({"_id": f"d{place}", "text": text}) for place, text in enumerate(DOCUMENTS)]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    asked = [f"{text},d{next(iter(grades))}" for text, grades, _ in ASKED]
    (folder / "golden.csv").write_text("\n".join(["query,expect", *asked]))
    model = tiny_bert(tmp_path / "m", seed=1)
    run = run_of(model, tmp_path, "quality", corpora=("golden",))
    staged = stage_source("golden", str(folder), run.staging)
    run = Run(**{**run.__dict__, "corpora": {corpus.name: corpus for corpus in staged}})

    tables = tables_of(run, "quality")

    row = next(row for row in tables["quality"] if row["kind"] == "golden")
    ranks = ranks_of(model, golden_collection("golden", DOCUMENTS, ASKED))
    assert (row["data_set"], row["items"]) == ("golden", len(ASKED))
    assert row["score"] == np.mean([rank <= 10 for rank in ranks])


@pytest.mark.parametrize("given_one", ["golden", "corpus"])
def test_golden_queries_and_their_texts_come_together(given_one: str, tmp_path: Path) -> None:
    file = tmp_path / "golden.csv"
    file.write_text("query,expect\nx,y\n")
    with pytest.raises(UsageError, match="are given together"):
        embaudit.check(tiny_bert(tmp_path / "m"), **{given_one: file})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="By files alone"):
        embaudit.check(tiny_bert(tmp_path / "n"), golden=file, corpus=file, files_only=True)
