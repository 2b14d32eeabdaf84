"""Documents in pieces: against loops, on vectors whose answer is known, findings, and the step on tiny models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from declared_rows import row_of
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import run_of, run_on, tables_of
from tiny import ENGLISH

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.corpora.downstream.retrieval import ranked
from embaudit.measures.chunks import ChunksSettings
from embaudit.measures.chunks import findings as found_by
from embaudit.measures.chunks.documents import (
    Ways,
    as_given,
    best_of_pieces,
    compose,
    is_long,
    is_read,
    mean_of_pieces,
    mean_scores,
    part_of,
)
from embaudit.measures.chunks.findings import section
from embaudit.measures.collection import Searched, best_of, is_written, pieces_of, start_of
from embaudit.measures.quality.material import Collection
from embaudit.measures.quality.measured import collection_overlap

SHARES = st.lists(st.integers(1, 4), min_size=1, max_size=8)


def collection_of(queries: int, documents: int, own: tuple[frozenset[int], ...] = ()) -> Collection:
    return Collection(
        "made up",
        tuple(f"query {place}" for place in range(queries)),
        tuple(f"document {place}" for place in range(documents)),
        tuple({place: 1.0} for place in range(queries)),
        own,
    )


# ---- documents ----


@given(st.integers(2, 12), st.integers(0, 12), st.integers(2, 5), st.integers(0, 9))
@settings(max_examples=50)
def test_each_passage_is_in_one_composed_document(queries: int, others: int, passages: int, seed: int) -> None:
    collection = collection_of(queries, queries + others)
    made = compose(collection, passages, seed)
    assert sorted(place for own in made.passages for place in own) == [*range(queries + others)]
    assert {len(own) for own in made.passages[:-1]} <= {passages}
    for query, relevant, wanted in zip(made.queries, made.collection.relevant, made.wanted, strict=True):
        (document,) = relevant
        assert wanted == query
        assert query in made.passages[document]
        assert collection.documents[query] in made.collection.documents[document].split("\n")
    assert made == compose(collection, passages, seed)


def test_a_composed_document_has_the_highest_grade_of_its_passages_and_holds_no_query() -> None:
    graded = Collection(
        "made up", ("a", "b"), tuple("wxyz"), ({0: 1.0, 1: 2.0}, {3: 1.0}), (frozenset({3}), frozenset())
    )
    made = compose(graded, 3, 0)
    # The document that is query a is in none, so nothing is relevant to query b.
    assert (made.queries, made.wanted, made.collection.relevant) == ((0,), (1,), ({0: 2.0},))
    assert sorted(made.collection.documents[0].split("\n")) == ["w", "x", "y"]


def test_what_is_read_of_a_composed_document() -> None:
    made = compose(collection_of(6, 6), 3, 0)
    lengths = [10, 20, 30, 40, 50, 60]
    for side in ("right", "left"):
        for limit in (25, 60, 200):
            read = is_read(made, lengths, limit, side)
            for wanted, found in zip(made.wanted, read, strict=True):
                (own,) = (own for own in made.passages if wanted in own)
                order = own if side == "right" else own[::-1]
                end = sum(lengths[place] for place in order[: order.index(wanted) + 1])
                assert found == (end <= limit)
    assert is_read(as_given(collection_of(3, 5)), [10, 20, 30, 1, 1], 20, "right").tolist() == [True, True, False]


def test_a_part_of_the_collection_has_queries_with_all_their_documents() -> None:
    part, places = part_of(collection_of(20, 40), 12)
    assert (len(part.queries), len(part.documents), places[:8].tolist()) == (8, 12, [*range(8)])
    whole, _ = part_of(collection_of(5, 9), 100)
    assert (len(whole.queries), len(whole.documents)) == (5, 9)
    many = Collection("made up", ("a", "b"), tuple("uvwxyz"), (dict.fromkeys(range(6), 1.0), {0: 1.0}))
    assert len(part_of(many, 3)[0].documents) == 6


@pytest.mark.parametrize(("lengths", "long"), [([10, 20, 1_000], False), ([10, 65, 1_000], True), ([64], False)])
def test_documents_are_long_if_most_fall_into_several_pieces(lengths: list[int], long: bool) -> None:
    assert is_long(lengths, 32) == long


# ---- ways ----


@given(SHARES, st.integers(0, 99))
@settings(max_examples=50)
def test_a_document_is_its_best_piece_or_the_mean_of_its_pieces(shares: list[int], seed: int) -> None:
    owners = np.repeat(np.arange(len(shares)), shares)
    generator = np.random.default_rng(seed)
    vectors, scores = generator.normal(size=(len(owners), 5)), generator.normal(size=(3, len(owners)))
    for document in range(len(shares)):
        pieces = [place for place, owner in enumerate(owners) if owner == document]
        assert mean_of_pieces(vectors, owners)[document] == pytest.approx(
            sum(vectors[place] for place in pieces) / len(pieces)
        )
        for query in range(3):
            own = [float(scores[query, place]) for place in pieces]
            assert best_of_pieces(scores, owners)[query, document] == max(own)
            assert mean_scores(scores, owners)[query, document] == pytest.approx(sum(own) / len(own))


def test_a_document_of_one_piece_is_the_document() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(5, 8)).astype(np.float32)
    searched = Searched(collection_of(3, 5), generator.normal(size=(3, 8)), vectors, "cosine")
    assert (best_of_pieces(searched.similarities(), np.arange(5)) == searched.similarities()).all()
    assert (searched.similarities(documents=mean_of_pieces(vectors, np.arange(5))) == searched.similarities()).all()


def test_the_mean_of_equal_pieces_of_a_bag_of_words_is_the_whole() -> None:
    generator = np.random.default_rng(0)
    embeddings = generator.normal(size=(50, 8))
    documents = generator.integers(0, 50, (6, 24))
    pieces = embeddings[documents].reshape(18, 8, 8).mean(axis=1)
    whole = embeddings[documents].mean(axis=1)
    assert mean_of_pieces(pieces, np.repeat(np.arange(6), 3)) == pytest.approx(whole)


def ways_of(seed: int, queries: int = 60, gain: float = 0.0) -> Ways:
    """Scores that are the same in all ways but for noise, and a gain of one way."""
    generator = np.random.default_rng(seed)
    whole = generator.uniform(0, 0.5, queries)
    found = {("whole", 254): whole}
    for size in (32, 64):
        for way in ("best", "mean"):
            more = gain if (way, size) == ("best", 64) else 0.0
            found[(way, size)] = whole + generator.normal(more, 0.1, queries)
    return Ways(collection_of(queries, queries), found)


def test_a_choice_is_reported_on_other_queries() -> None:
    ways = ways_of(0, gain=0.3)
    choice = ways.choice(seed=0)
    assert choice is not None
    assert choice.way == ways.best == ("best", 64)
    assert choice.choosing + choice.reporting == 60
    assert abs(choice.choosing - choice.reporting) <= 1
    gain, low, high = choice.gain
    assert low is not None
    assert high is not None
    assert 0.2 < low < gain < high < 0.4
    row = ways.row(("best", 64))
    assert row["gain"] == pytest.approx(float(np.mean(ways.found[("best", 64)] - ways.whole)))
    assert ways.row(("whole", 254))["gain"] == 0
    assert ways.row(("whole", 254))["gain_low"] is None


def test_choosing_the_best_of_noise_is_no_gain() -> None:
    gains = [choice.gain.known for seed in range(40) if (choice := ways_of(seed).choice(seed)) is not None]
    chosen = [
        max(float(one.found[key].mean() - one.whole.mean()) for key in one.found) for one in map(ways_of, range(40))
    ]
    # On the same queries, the best of four is always above 0.
    assert float(np.mean(chosen)) > 0.005
    assert abs(float(np.mean(gains))) < 0.006


def test_queries_about_one_document_leave_nothing_to_report_on() -> None:
    one = Collection("made up", ("a", "b"), ("x", "y"), ({0: 1.0}, {0: 1.0}))
    scores = np.array([0.5, 0.6])
    assert Ways(one, {("whole", 9): scores, ("best", 3): scores}).choice(0) is None
    assert Ways(collection_of(4, 4), {("whole", 9): np.zeros(4)}).choice(0) is None


def test_random_vectors_find_as_much_as_chance() -> None:
    generator = np.random.default_rng(0)
    collection = collection_of(400, 400)
    searched = Searched(collection, generator.normal(size=(400, 16)), generator.normal(size=(400, 16)), "cosine")
    pieces, owners = generator.normal(size=(1_200, 16)), np.repeat(np.arange(400), 3)
    chance = sum(1 / log2(rank + 1) for rank in range(1, 11)) / 400
    for similarities in (
        searched.similarities(),
        best_of_pieces(searched.similarities(documents=pieces), owners),
        searched.similarities(documents=mean_of_pieces(pieces, owners)),
    ):
        assert float(searched.ndcg(ranked(similarities)).mean()) == pytest.approx(chance, abs=0.012)


# ---- findings ----


def findings_of(
    gain: tuple[float, float | None, float | None],
    read: tuple[float, float | None, float | None] | None = (0.0, -0.02, 0.02),
    composed: bool = True,
    way: str = "best",
) -> dict[str, Any]:
    ends = ("gain", "gain_low", "gain_high")
    shared: dict[str, Any] = {"way": way, "size": 128, "queries": 40}
    tables = {
        "chunk_choice": [
            row_of(
                "chunk_choice",
                **{"data_set": "mine", "is_composed": composed, "passages": 4, "documents": 30, "tokens": 448.0},
                **{"length_limit": 254, "truncated": 30, "way": way, "size": 128, "whole": 0.6},
                **dict(zip(ends, gain, strict=True)),
            )
        ],
        "chunk_length": [
            row_of("chunk_length", part=part, score=0.9, **dict(zip(ends, one, strict=True)), **shared)
            for part, one in (("passage cut", (0.5, 0.4, 0.6)), ("passage read", read))
            if one is not None
        ],
    }
    return {one.name: one for one in found_by.findings(lambda name: tables.get(name, []), ChunksSettings(corpora=()))}


@pytest.mark.parametrize(
    ("gain", "level"),
    [
        ((0.3, 0.2, 0.4), "look"),
        ((0.019, 0.01, 0.03), "ok"),
        ((0.04, -0.01, 0.09), "ok"),
        ((0.06, -0.01, 0.13), "not measured"),
        ((-0.2, -0.3, -0.1), "ok"),
        ((0.3, None, None), "not measured"),
    ],
)
def test_documents_are_better_cut_where_it_is_worth_it(gain: Any, level: str) -> None:
    assert findings_of(gain)["whole"].level == level
    assert findings_of((0.3, 0.2, 0.4), gain)["crowding"].level == level


def test_a_finding_names_size_loss_and_documents() -> None:
    found = findings_of((0.3, 0.2, 0.4))
    assert "composed of 4 passages (448 tokens) scores 0.600 whole, and 0.900 by the best" in found["whole"].sentence
    assert "128 tokens (+0.300 [+0.200, +0.400], held out)" in found["whole"].sentence
    assert "about 128 tokens" in found["whole"].advice
    assert "40 queries" in found["crowding"].sentence
    assert "0.900" in found["crowding"].sentence
    assert findings_of((0.3, 0.2, 0.4), composed=False)["whole"].sentence.startswith("A document of mine")
    assert "mean of" in findings_of((0.3, 0.2, 0.4), way="mean")["whole"].advice
    assert findings_of((0.3, 0.2, 0.4), None)["crowding"].level == "not measured"


def test_nothing_measured_nothing_found() -> None:
    assert not [*found_by.findings(lambda name: [], ChunksSettings(corpora=()))]
    assert section({"chunk": [], "chunk_length": [], "chunk_choice": []}) is None


def test_sizes_are_ascending_and_not_too_small() -> None:
    assert ChunksSettings(sizes=(64, 32, 64)).sizes == (32, 64)
    with pytest.raises(ValueError, match="at least 8 tokens"):
        ChunksSettings(sizes=(32, 7))


# ---- the step ----

NOUNS = tuple(ENGLISH.split()[:70])


def sentence(place: int, words: int) -> str:
    return " ".join(np.random.default_rng(place).choice(NOUNS, words)) + "."


def documents_of(count: int, sentences: int) -> list[str]:
    return [" ".join(sentence(100 * place + part, 7) for part in range(sentences)) for place in range(count)]


def test_the_step_measures_what_a_loop_measures(tiny: Checkpoint, tmp_path: Path, one_thread: None) -> None:
    # Of some 50 tokens: all are read whole, and some have only one piece of 48.
    documents = [text for place in range(15) for text in (documents_of(30, 6)[place], documents_of(30, 3)[15 + place])]
    queries = [f"which {sentence(100 * place, 5)}" for place in range(30)]
    run = run_on(tiny, tmp_path, "chunks", documents, queries, sizes=(12, 30), searched=60)
    tables = tables_of(run, "chunks")
    (choice,) = tables["chunk_choice"]
    assert not choice["is_composed"]
    assert (choice["documents"], choice["passages"]) == (30, 1)
    assert {row["part"] for row in tables["chunk_length"]} == {"document read whole"}

    encoder = Encoder(tiny.reading("document"))
    asked = Encoder(tiny.reading("query")).encode_texts(queries).astype(float)

    def scored(known: list[list[np.ndarray]], way: str) -> float:
        found = []
        for query, vector in enumerate(asked):

            def cosine(one: np.ndarray, vector: np.ndarray = vector) -> float:
                return float(one @ vector / np.linalg.norm(one) / np.linalg.norm(vector))

            similarities = [
                max(map(cosine, of_document)) if way == "best" else cosine(np.mean(of_document, axis=0))
                for of_document in known
            ]
            rank = 1 + sum(one > similarities[query] for one in similarities)
            found.append(1 / log2(rank + 1) if rank <= 10 else 0.0)
        return float(np.mean(found))

    rows = {(row["way"], row["size"]): row for row in tables["chunk"]}
    whole = scored([[encoder.encode_texts([text])[0].astype(float)] for text in documents], "best")
    assert rows[("whole", tiny.content_limit)]["score"] == pytest.approx(whole)
    for size in (12, 30):
        cut = [pieces_of(text, size, encoder.own_ids) for text in documents]
        vectors = [[encoder.encode_texts([piece])[0].astype(float) for piece in pieces] for pieces in cut]
        for way in ("best", "mean"):
            row = rows[(way, size)]
            assert row["score"] == pytest.approx(scored(vectors, way))
            assert row["gain"] == pytest.approx(row["score"] - whole)
            assert row["pieces"] == pytest.approx(sum(map(len, cut)) / 30)
            assert row["cut"] == sum(len(pieces) > 1 for pieces in cut)
            words = collection_overlap(queries, [piece for pieces in cut for piece in pieces])["BM25"]
            owners = [document for document, pieces in enumerate(cut) for _ in pieces]
            by_words = np.array(
                [
                    [
                        (max if way == "best" else np.mean)(words[query, [owner == one for owner in owners]])
                        for one in range(30)
                    ]
                    for query in range(30)
                ]
            )
            found = Searched(collection_of(30, 30), asked, asked, "cosine").ndcg(ranked(by_words))
            assert row["words_score"] == pytest.approx(float(found.mean()), abs=0.03)


def test_short_documents_are_composed_and_one_piece_gains_nothing(tiny: Checkpoint, tmp_path: Path) -> None:
    documents, queries = documents_of(24, 2), [f"which {sentence(100 * place, 5)}" for place in range(24)]
    tables = tables_of(run_on(tiny, tmp_path, "chunks", documents, queries, sizes=(12, 60), passages=2), "chunks")
    (choice,) = tables["chunk_choice"]
    assert choice["is_composed"]
    assert (choice["documents"], choice["passages"]) == (12, 2)
    # No composed document is longer than 60 tokens: this size would be the whole.
    assert {row["size"] for row in tables["chunk"]} == {12, tiny.content_limit}
    assert {row["part"] for row in tables["chunk_length"]} == {"passage read"}


def test_a_collection_without_long_documents_gets_a_note(tiny: Checkpoint, tmp_path: Path) -> None:
    documents, queries = documents_of(12, 1), [f"which {sentence(100 * place, 5)}" for place in range(12)]
    (note,) = tables_of(run_on(tiny, tmp_path, "chunks", documents, queries, sizes=(50,)), "chunks")["note"]
    assert note["text"] == "Skipped chunks: no document is cut by a size below the 62 tokens that are read."


def test_one_query_is_too_few(tiny: Checkpoint, tmp_path: Path) -> None:
    (note,) = tables_of(run_on(tiny, tmp_path, "chunks", documents_of(3, 6), ["which river"]), "chunks")["note"]
    assert note["text"].startswith("Skipped chunks: ")


def test_on_the_embedded_sample(tiny: Checkpoint, tmp_path: Path, one_thread: None) -> None:
    tables = tables_of(run_of(tiny, tmp_path, "chunks", searched=60), "chunks")
    (choice,) = tables["chunk_choice"]
    assert choice["is_composed"]
    assert choice["documents"] == 15
    assert choice["truncated"] == 15
    assert {row["size"] for row in tables["chunk"]} == {32, tiny.content_limit}
    assert {row["part"] for row in tables["chunk_length"]} == {"passage cut"}
    found = {one.name: one for one in found_by.findings(lambda name: tables.get(name, []), ChunksSettings(corpora=()))}
    assert found["crowding"].level == "not measured"
    shown = section(tables)
    assert shown is not None
    assert "each composed of 4 passages" in str(shown.parts[0])
    assert len(shown.parts) == 4


# ---- texts in pieces: nothing is lost but spaces, no piece is too long, and sentences stay whole where they fit ----


TEXTS = st.lists(st.sampled_from(["aa", "b", "ccccccc", ".", "!", "。", "\n", " ", "  ", 'd."']), max_size=40).map(
    "".join
)


def words(texts: Sequence[str]) -> list[list[int]]:
    """One token for each word."""
    return [[len(word) for word in text.split()] for text in texts]


def characters(texts: Sequence[str]) -> list[list[int]]:
    """One token for each character that is no space."""
    return [[ord(character) for character in text if not character.isspace()] for text in texts]


@given(TEXTS, st.integers(1, 12))
@settings(max_examples=200)
def test_pieces_are_the_text_and_none_is_too_long(text: str, size: int) -> None:
    pieces = pieces_of(text, size, characters)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert max(map(len, characters(pieces))) <= size
    if len(characters([text])[0]) <= size:
        assert pieces == [text]
    # Two neighbours would not have fitted into one piece.
    lengths = [len(ids) for ids in characters(pieces)]
    assert all(one + other > size for one, other in pairwise(lengths))


def test_sentences_stay_whole_where_they_fit() -> None:
    text = 'One two. Three four five! "Six seven?" Eight nine ten eleven twelve. Thirteen'
    assert pieces_of(text, 5, words) == [
        "One two. Three four five!",
        '"Six seven?"',
        "Eight nine ten eleven twelve.",
        "Thirteen",
    ]
    assert pieces_of(text, 3, words) == [
        "One two.",
        "Three four five!",
        '"Six seven?" Eight',
        "nine ten eleven",
        "twelve. Thirteen",
    ]
    assert pieces_of(text, 100, words) == [text]


def test_a_script_without_spaces_is_cut_between_characters() -> None:
    assert pieces_of("一二三四五。六七八", 6, characters) == ["一二三四五。", "六七八"]
    assert pieces_of("一二三四五六七八", 4, characters) == ["一二三四", "五六七八"]


@pytest.mark.parametrize("text", ["", " ", "a"])
def test_the_shortest_texts_are_one_piece(text: str) -> None:
    assert pieces_of(text, 1, characters) == [text]


def test_the_start_ends_with_a_sentence_if_half_is_left() -> None:
    text = "One two three. Four five six. Seven"
    assert start_of(text, 5, words) == words(["One two three."])[0]
    assert start_of(text, 6, words) == words(["One two three. Four five six."])[0]
    # Of 20 tokens, a first sentence of three would leave too little.
    long = "One two three. " + "word " * 30
    assert start_of(long, 20, words) == words([long])[0][:20]
    assert start_of("One", 5, words) == [3]
    assert start_of("", 5, words) == []


def test_a_text_of_unknown_tokens_is_not_written() -> None:
    assert is_written([1, 0], unknown=0)
    assert is_written([0, 5], unknown=None)
    assert not is_written([1, 0, 0], unknown=0)
    assert not is_written([], unknown=0)


def test_the_best_document_has_the_highest_grade() -> None:
    assert best_of({4: 1.0, 2: 2.0, 9: 2.0}) == 2
