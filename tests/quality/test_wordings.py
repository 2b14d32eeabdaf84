"""Wordings of the instruction: prompts before queries by hand, the spread, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import run_of, tables_of
from test_quality_rules import an_independent_score
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.prompts import prompt_tokens
from embaudit.measures.measure import Readable
from embaudit.measures.quality import QualitySettings
from embaudit.measures.quality.material import Collection, sample_material
from embaudit.measures.quality.measured import MeasuredCollection, collection_overlap, measure_collection
from embaudit.measures.quality.scores import ResampledScore
from embaudit.measures.quality.wordings import (
    WORDINGS,
    Worded,
    measure_wordings,
    place_of_declared,
    spread,
    wording_findings,
)


@pytest.fixture(scope="module")
def measured(tiny: Checkpoint) -> MeasuredCollection:
    (whole,) = sample_material().collections
    return measure_collection(tiny, whole.first(20, 60)[0])


def all_cosines(queries: np.ndarray, documents: np.ndarray) -> list[list[float]]:
    """One product at a time."""
    return [[float(one @ two / np.linalg.norm(one) / np.linalg.norm(two)) for two in documents] for one in queries]


def slow_ndcg(similarities: Sequence[Sequence[float]], collection: Collection) -> float:
    """Mean nDCG@10, rank by rank."""
    total = 0.0
    for own, grades in zip(similarities, collection.relevant, strict=True):
        order = sorted(range(len(own)), key=lambda place: -own[place])[:10]
        gained = sum(grades.get(place, 0.0) / np.log2(rank + 2) for rank, place in enumerate(order))
        best = sum(grade / np.log2(rank + 2) for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:10]))
        total += gained / best
    return total / len(similarities)


def test_a_score_is_that_of_queries_with_the_prompt_written_before_them(
    tiny: Checkpoint, measured: MeasuredCollection
) -> None:
    """The prompt is put before the text by hand, as a program would that knows no prompts."""
    found = {one.name: one for one in measure_wordings(tiny, measured)}
    assert list(found) == list(WORDINGS)
    assert [name for name, one in found.items() if one.is_declared] == ["none"]
    documents = Encoder(tiny.reading("document")).encode_texts(measured.collection.documents)
    for name in ("E5", "BGE", "E5 instruct"):
        texts = [WORDINGS[name] + query for query in measured.collection.queries]
        queries = Encoder(tiny.reading("query")).encode_texts(texts)
        wanted = slow_ndcg(all_cosines(queries, documents), measured.collection)
        assert found[name].score.value == pytest.approx(wanted, abs=1e-6)
        assert found[name].change.value == pytest.approx(wanted - found["none"].score.value, abs=1e-6)


def test_words_are_asked_with_the_prompt_as_words(tiny: Checkpoint, measured: MeasuredCollection) -> None:
    found = {one.name: one.words_score for one in measure_wordings(tiny, measured)}
    texts = measured.collection
    cosines = collection_overlap([f"query: {query}" for query in texts.queries], texts.documents)["TF-IDF"]
    assert found["E5"] == pytest.approx(slow_ndcg(cosines.tolist(), texts))
    assert found["none"] is not None


def test_a_declared_prompt_of_nobody_else_comes_first(tiny: Checkpoint, measured: MeasuredCollection) -> None:
    mine = prompt_tokens("mine: ", tiny.tokenizer, {}, is_pooled=True)
    other = replace(tiny, prompts={**tiny.prompts, "query": mine})
    found = measure_wordings(other, measured)
    assert [(one.name, one.prompt, one.is_declared) for one in found[:2]] == [
        ("declared", "mine: ", True),
        ("none", "", False),
    ]
    assert len(found) == 1 + len(WORDINGS)


def test_a_wording_that_leaves_no_room_is_left_out(tiny: Checkpoint, measured: MeasuredCollection) -> None:
    short = replace(tiny, limits={**tiny.limits, "query": 12})
    names = [one.name for one in measure_wordings(short, measured)]
    assert "E5" in names
    assert "E5 instruct" not in names


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.integers(0, 7))
def test_spread_and_place_are_counted(values: list[float], declared: int) -> None:
    declared %= len(values)
    worded = made(values, declared)
    assert spread(worded) == pytest.approx(max(abs(one - two) for one in values for two in values))
    assert place_of_declared(worded) == 1 + len([one for one in values if one > values[declared]])


def made(values: list[float], declared: int = 0, deviation: float = 0.005, prompt: str = "") -> list[Worded]:
    """Scores, each with its own noise; the declared one has this prompt, the others have one of their own."""
    scores = [an_independent_score(value, deviation, place) for place, value in enumerate(values)]
    return [
        Worded(
            f"wording {place}",
            prompt if place == declared else f"{place}: ",
            place == declared,
            score,
            ResampledScore(0.0, np.zeros(len(score.resampled))) if place == declared else score.minus(scores[declared]),
        )
        for place, score in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("values", "prompt", "level", "said"),
    [
        (
            [0.8, 0.79, 0.8],
            "",
            "ok",
            "nDCG@10 on the 20 queries of sample is .79 to .80, a spread of .01; the declared one (no prompt)",
        ),
        ([0.8, 0.84, 0.7], "", "look", "Best is wording 1"),
        # Of a checkpoint without a prompt, foreign ones may do as they like.
        ([0.8, 0.8, 0.6], "", "ok", "Worst is wording 2"),
        ([0.8, 0.8, 0.6], "mine: ", "look", "Worst is wording 2"),
        ([0.7, 0.72, 0.71], "", "ok", "has .70 and is number 3. None is worse."),
    ],
)
def test_what_another_wording_does_clearly_is_said(
    measured: MeasuredCollection, values: list[float], prompt: str, level: str, said: str
) -> None:
    (one,) = wording_findings(measured, made(values, prompt=prompt))
    assert one.level == level
    assert said in one.sentence
    assert f"With {len(values)} wordings" in one.sentence
    assert bool(one.advice) == (level == "look")


def test_the_clear_one_is_named_and_not_a_lucky_one(measured: MeasuredCollection) -> None:
    lucky = made([0.8, 0.84, 0.86])
    wide = an_independent_score(0.06, 0.05, 9)
    (one,) = wording_findings(measured, [*lucky[:2], replace(lucky[2], change=wide)])
    assert one.level == "look"
    assert "Best is wording 1" in one.sentence
    assert "'1: '" in one.advice


def test_a_difference_that_may_be_chance_is_none(measured: MeasuredCollection) -> None:
    (one,) = wording_findings(measured, made([0.8, 0.84, 0.75], deviation=0.05, prompt="mine: "))
    assert one.level == "ok"
    (few,) = wording_findings(
        measured,
        [
            replace(
                w, score=ResampledScore(w.score.value, np.empty(0)), change=ResampledScore(w.change.value, np.empty(0))
            )
            for w in made([0.8, 0.9])
        ],
    )
    assert few.level == "not measured"


# ---- the step ----


def test_wordings_are_a_table_only_if_they_are_asked_for(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    tables: list[dict[str, list[dict[str, Any]]]] = []
    for wordings in (False, True):
        run = run_of(folder, tmp_path, "quality", wordings=wordings)
        tables.append(tables_of(run, "quality"))
    without, with_them = tables
    assert "quality_wording" not in without
    rows = with_them["quality_wording"]
    assert {one["wording"] for one in rows} == set(WORDINGS)
    assert [one["change"] for one in rows if one["is_declared"]] == [0.0]
    assert without["quality"] == with_them["quality"]
    assert [one["name"] for one in with_them["quality_finding"] if one["name"] == "wording"] == ["wording"]


def test_as_much_is_encoded_as_is_estimated() -> None:
    readable = Readable(6, 72, 384, 30_522, 1_000, 256, {}, {})
    (*_, worded) = QualitySettings(wordings=True).work(readable)
    assert len(list(QualitySettings().work(readable))) == 1
    (judged,) = sample_material().collections
    assert worded.texts >= (len(WORDINGS) - 1) * len(judged.queries)
