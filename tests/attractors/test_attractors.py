"""Hubs and texts without content: places counted slowly, and collections whose answer is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from declared_rows import row_of
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import Tables, answered, found_by, run_on, tables_of
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.downstream import unit_rows
from embaudit.corpora.downstream.retrieval import NOT_RANKED
from embaudit.measures.attractors.findings import section
from embaudit.measures.attractors.places import (
    asked_by_all,
    best_relevant,
    chance_of_meeting,
    counts_of,
    is_above,
    places_taken,
    random_skew,
    share_of,
    skew_of,
)
from embaudit.measures.attractors.steps import KINDS
from embaudit.measures.geometry.figures import occurrences, pair_cosines
from embaudit.words.estimate import Estimate

WORDS = ENGLISH.split()
ALL = [text for texts in KINDS.values() for text in texts]


def units(count: int, dimensions: int, seed: int = 0) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(size=(count, dimensions)))


# ---- places, slowly ----


@settings(max_examples=20)
@given(seed=st.integers(0, 1_000), documents=st.integers(2, 30))
def test_occurrences_are_those_of_a_loop(seed: int, documents: int) -> None:
    known, asked = units(documents, 4, seed), units(7, 4, seed + 1)
    own = [frozenset({0}) if query == 3 else frozenset[int]() for query in range(7)]
    ranking = asked_by_all(asked @ known.T, known @ known.T, own)
    slow = [0] * documents
    for asker in range(documents + 7):
        vector = known[asker] if asker < documents else asked[asker - documents]
        others = [at for at in range(documents) if at != asker and not (asker == documents + 3 and at == 0)]
        for place in sorted(others, key=lambda at: -(vector @ known[at]))[:10]:
            slow[place] += 1
    assert counts_of(ranking, documents).tolist() == slow


def test_occurrences_among_documents_are_those_of_geometry() -> None:
    known = units(60, 8)
    ranking = asked_by_all(np.empty((0, 60)), known @ known.T)
    assert counts_of(ranking, 60).tolist() == occurrences(pair_cosines(known), 10).tolist()


@settings(max_examples=20)
@given(seed=st.integers(0, 1_000), documents=st.integers(1, 20), added=st.integers(1, 8))
def test_added_texts_take_the_places_that_a_sorted_list_gives_them(seed: int, documents: int, added: int) -> None:
    rng = np.random.default_rng(seed)
    known, others = rng.integers(0, 6, (5, documents)) / 5, rng.integers(0, 6, (5, added)) / 5
    taken = places_taken(known, others)
    for query in range(5):
        named = [(-value, 0, place) for place, value in enumerate(known[query])]
        named += [(-value, 1, place) for place, value in enumerate(others[query])]
        best = {(side, place) for _, side, place in sorted(named)[:10]}
        assert taken[query].tolist() == [(1, place) in best for place in range(added)]


def test_what_stands_above_the_best_relevant_document() -> None:
    similarities = np.array([[0.9, 0.5, 0.7], [0.1, 0.2, 0.3]])
    best = best_relevant(similarities, [{1: 1.0, 2: 0.5}, {0: 1.0}])
    assert best.tolist() == [0.7, 0.1]
    # As similar is not above.
    assert is_above(np.array([[0.7, 0.71], [0.0, 0.1]]), best).tolist() == [[False, True], [False, False]]


def test_skewness_is_that_of_scipy_with_an_interval_around_it() -> None:
    known, asked = units(80, 30), units(40, 30, 1)
    ranking = asked_by_all(asked @ known.T, known @ known.T)
    found = skew_of(ranking, 80)
    assert found is not None
    assert found.value == pytest.approx(scipy.stats.skew(counts_of(ranking, 80)))
    estimate = found.estimate()
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < found.value < estimate.high


def test_few_documents_or_equal_counts_have_no_skewness() -> None:
    known = units(20, 8)
    assert skew_of(asked_by_all(np.empty((0, 20)), known @ known.T), 20) is None
    # Every document occurs once.
    assert skew_of(np.arange(30)[:, None], 30) is None
    assert skew_of(np.full((30, 10), NOT_RANKED), 30) is None
    few = skew_of(np.zeros((9, 1), dtype=np.int64), 30)
    assert few is not None
    assert few.estimate().low is None
    assert random_skew(np.ones((30, 4)), 5) is None


def test_a_share_has_an_interval_from_ten_queries() -> None:
    assert share_of(np.ones(9, dtype=bool)) == Estimate(1)
    share, low, high = share_of(np.zeros(10, dtype=bool))
    assert (share, low) == (0, 0)
    assert high == pytest.approx(0.278, abs=1e-3)


# ---- collections whose answer is known ----


@pytest.mark.parametrize(("documents", "added"), [(30, 3), (200, 8)])
def test_random_similarities_meet_added_texts_by_chance(documents: int, added: int) -> None:
    rng = np.random.default_rng(0)
    taken = places_taken(rng.normal(size=(4_000, documents)), rng.normal(size=(4_000, added)))
    assert taken.any(axis=1).mean() == pytest.approx(chance_of_meeting(documents, added), abs=0.025)
    assert chance_of_meeting(5, 2) == 1


def test_random_vectors_are_as_skewed_as_chance() -> None:
    found = []
    for seed in range(5):
        known, asked = units(150, 40, seed), units(50, 40, seed + 99)
        found.append(skew_of(asked_by_all(asked @ known.T, known @ known.T), 150))
    values = [one.value for one in found if one is not None]
    chance = random_skew(units(150, 40, 5), 50)
    assert chance is not None
    # The effective rank of as few vectors is less than 40.
    assert np.mean(values) == pytest.approx(chance, abs=0.25)


def test_the_mean_of_all_texts_is_a_hub() -> None:
    known = units(100, 1_000)
    with_mean = unit_rows(np.vstack([known, known.mean(axis=0)]))
    ranking = asked_by_all(np.empty((0, 101)), with_mean @ with_mean.T)
    counts = counts_of(ranking, 101)
    assert [int(counts.argmax()), int(counts.max())] == [100, 100]
    hub, plain = skew_of(ranking, 101), skew_of(asked_by_all(np.empty((0, 100)), known @ known.T), 100)
    assert hub is not None
    assert plain is not None
    assert hub.value > 3 * abs(plain.value)


# ---- texts ----


def test_texts_without_content_are_of_eight_kinds_and_each_is_one() -> None:
    assert len(KINDS) == 8
    assert all(5 <= len(texts) <= 8 for texts in KINDS.values())
    assert len(set(ALL)) == len(ALL)


# ---- the step ----


def texts(count: int, words: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, words)) for _ in range(count)]


DOCUMENTS = texts(30, 12, 0)
QUERIES = [" ".join(document.split()[2:7]) for document in DOCUMENTS[:14]]


@pytest.fixture(scope="module")
def tables(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    run = run_on(tiny_checkpoint, tmp_path_factory.mktemp("attractors"), "attractors", DOCUMENTS, QUERIES)
    return tables_of(run, "attractors")


def test_the_tables_are_what_the_served_vectors_give_one_query_at_a_time(tables: Tables, tiny_checkpoint: Path) -> None:
    encoder = Encoder(load_checkpoint(str(tiny_checkpoint)))
    queries, documents = (unit_rows(encoder.encode_texts(side)) for side in (QUERIES, DOCUMENTS))
    dirty = set()
    rows = {row["kind"]: row for row in tables["attractor"]}
    for kind, own in KINDS.items():
        added = unit_rows(encoder.encode_texts(list(own)))
        met, above = 0, 0
        for place, query in enumerate(queries):
            tenth = sorted([*(documents @ query), *(added @ query)])[-10]
            met += max(added @ query) >= tenth
            above += max(added @ query) > documents[place] @ query
            if max(added @ query) > documents[place] @ query:
                dirty.add(place)
        assert (rows[kind]["met"], rows[kind]["above"]) == pytest.approx((met / 14, above / 14))
        assert (rows[kind]["texts"], rows[kind]["queries"]) == (len(own), 14)
        assert rows[kind]["worst_text"] in (*own, None)
    (summary,) = tables["attractor_summary"]
    assert summary["clean"] == pytest.approx(1 - len(dirty) / 14)
    assert (summary["documents"], summary["texts"]) == (30, len(ALL))
    counts = [0] * 30
    for asker, vector in enumerate([*documents, *queries]):
        order = sorted((at for at in range(30) if at != asker), key=lambda at: -(documents[at] @ vector))
        for place in order[:10]:
            counts[place] += 1
    assert [row["occurrences"] for row in tables["hub"]] == sorted(counts, reverse=True)[:10]
    assert summary["skew"] == pytest.approx(scipy.stats.skew(counts))
    assert summary["top_share"] == pytest.approx(max(counts) / 44)


def test_hubs_are_named_in_order(tables: Tables) -> None:
    hubs = tables["hub"]
    assert [row["rank"] for row in hubs] == list(range(1, 11))
    for row in hubs:
        assert row["text"] in {document[:100] for document in DOCUMENTS}
        assert row["words"] == 12
        assert row["relevant"] in (0, 1)
        assert row["above_relevant"] <= 14


def test_words_find_the_documents_that_queries_are_cut_from(tables: Tables) -> None:
    (summary,) = tables["attractor_summary"]
    assert summary["words_clean"] == 1
    assert all(row["words_above"] == 0 for row in tables["attractor"])


def test_few_documents_have_no_hubs_and_too_few_queries_are_said_so(tiny_checkpoint: Path, tmp_path: Path) -> None:
    few = tables_of(run_on(tiny_checkpoint, tmp_path / "few", "attractors", DOCUMENTS[:15], QUERIES[:5]), "attractors")
    (summary,) = few["attractor_summary"]
    assert summary["skew"] is summary["top_share"] is summary["random_skew"] is summary["clean_low"] is None
    made = found_by("attractors", few)
    assert {one.level for one in made.values()} == {"not measured"}
    none = tables_of(run_on(tiny_checkpoint, tmp_path / "none", "attractors", DOCUMENTS, QUERIES[:2]), "attractors")
    assert list(none) == ["note"]
    assert found_by("attractors", none) == {}


def test_texts_that_the_tokenizer_cannot_write_come_up_nowhere(tmp_path: Path) -> None:
    """A checkpoint without special tokens, whose tokenizer drops whatever is no letter."""
    path = tiny_bert(tmp_path / "bare") / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["post_processor"] = None
    letters = {"type": "Replace", "pattern": {"Regex": "[^a-z ]"}, "content": ""}
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [tokenizer["normalizer"], letters]}
    path.write_text(json.dumps(tokenizer))
    found = tables_of(run_on(path.parent, tmp_path, "attractors", DOCUMENTS, QUERIES), "attractors")
    (row,) = (row for row in found["attractor"] if row["kind"] == "punctuation and markup")
    assert row["worst_text"] in {None, *(text for text in KINDS[row["kind"]] if any(map(str.isalpha, text)))}
    assert len(found["attractor"]) == len(KINDS)


# ---- findings ----


def summary(**cells: Any) -> Tables:
    whole: dict[str, Any] = {
        **{"documents": 270, "queries": 90, "texts": 54, "clean": 0.97, "clean_low": 0.9, "clean_high": 0.99},
        **{"skew": 1.1, "skew_low": 0.7, "skew_high": 1.5, "words_skew": 2.3, "random_skew": 0.2},
        **{"top_share": 0.1, "top_share_low": 0.08, "top_share_high": 0.13, "words_clean": 0.76, **cells},
    }
    kinds = [
        row_of("attractor", kind="error pages", above=0.3, worst_text="404\nNot Found"),
        row_of("attractor", kind="tables of numbers", above=0.1, worst_text="1 2 3"),
    ]
    hubs = [row_of("hub", rank=2, text="other"), row_of("hub", rank=1, text="Lorem ipsum " * 20)]
    return {"attractor_summary": [row_of("attractor_summary", **whole)], "attractor": kinds, "hub": hubs}


@pytest.mark.parametrize(
    ("clean", "low", "high", "level"),
    [
        *((1.0, 0.96, 1.0, "ok"), (0.93, 0.86, 0.97, "ok"), (0.9, 0.82, 0.949, "look"), (0.3, 0.2, 0.4, "look")),
        (1.0, 0.7, 1.0, "not measured"),
    ],
)
def test_junk_comes_up_too_often_from_one_query_in_twenty(clean: float, low: float, high: float, level: str) -> None:
    made = found_by("attractors", summary(clean=clean, clean_low=low, clean_high=high))["junk"]
    assert made.level == level
    assert (made.value, made.low, made.high) == pytest.approx((1 - clean, 1 - high, 1 - low))
    assert ("Most often: error pages (30%), such as “404 Not Found”." in made.sentence) == (level == "look")
    assert bool(made.advice) == (level != "ok")


@pytest.mark.parametrize(
    ("cells", "level"),
    [
        ({}, "ok"),
        ({"top_share": 0.3, "top_share_low": 0.24, "top_share_high": 0.4}, "ok"),
        ({"top_share": 0.4, "top_share_low": 0.26, "top_share_high": 0.5}, "look"),
        ({"skew": 2.5, "skew_low": 2.1, "skew_high": 3.0}, "ok"),
        ({"skew": 2.9, "skew_low": 2.4, "skew_high": 3.0}, "look"),
        ({"skew": 2.5, "skew_low": 2.1, "skew_high": 3.0, "words_skew": None}, "look"),
        ({"skew": 1.9, "skew_low": 1.5, "skew_high": 2.5, "words_skew": 0.5}, "ok"),
    ],
)
def test_hubs_are_many_results_or_more_skewed_than_words(cells: dict[str, Any], level: str) -> None:
    made = found_by("attractors", summary(**cells))["hubs"]
    assert made.level == level
    assert ("“Lorem ipsum Lorem" in made.sentence) == (level == "look")
    assert "270" not in made.sentence
    assert "of 360 texts" in made.sentence


def test_the_section_has_both_tables(tables: Tables) -> None:
    facts = {"attractors": tables["attractor"], "attractor_hubs": tables["hub"]}
    made = section({**facts, "attractor_summary": tables["attractor_summary"]})
    assert made is not None
    first, skewness, second = made.parts
    assert isinstance(skewness, str)
    assert skewness.startswith("Skewness of the documents' occurrences: ")
    assert len(first.rows) == 8  # type: ignore[union-attr]
    assert len(second.rows) == 10  # type: ignore[union-attr]
    assert section({name: [] for name in (*facts, "attractor_summary")}) is None


def test_the_queries_list_kinds_and_hubs(tables: Tables, empty_once: Path, tmp_path: Path) -> None:
    kinds = answered("attractors", tables, empty_once, tmp_path)
    assert {one["kind"] for one in kinds} == set(KINDS)
    assert [one["above"] for one in kinds] == sorted((one["above"] for one in kinds), reverse=True)
    hubs = answered("hubs", tables, empty_once, tmp_path)
    assert [one["rank"] for one in hubs] == list(range(1, 11))
