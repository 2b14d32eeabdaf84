"""Evidence at a depth: against a loop, on models whose answer is known, findings, and the step on tiny models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from declared_rows import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import run_of, run_on, tables_of
from tiny import ENGLISH

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.collection import collection_of as staged_collection
from embaudit.measures.collection import read_collection, start_of
from embaudit.measures.position import DEPTHS, PositionSettings
from embaudit.measures.position import work as found_by
from embaudit.measures.position.depths import Duel, Gains, draw_duels, is_lost
from embaudit.measures.position.work import section
from embaudit.measures.quality.material import Collection
from embaudit.words.estimate import Estimate

WORDS = 400
Model = Callable[[Sequence[int]], np.ndarray]


def collection_of(count: int, more: int = 0, own: tuple[frozenset[int], ...] = ()) -> Collection:
    """Queries whose document is the one in their place, and other documents."""
    queries = tuple(f"query {place}" for place in range(count))
    documents = tuple(f"document {place}" for place in range(count + more))
    return Collection("made up", queries, documents, tuple({place: 1.0} for place in range(count)), own)


def ids_of(count: int, length: int, seed: int = 0) -> list[list[int]]:
    return np.random.default_rng(seed).integers(0, WORDS, (count, length)).tolist()


def duels_of(count: int, tokens: int = 60, length: int = 10) -> list[Duel]:
    documents = ids_of(2 * count + 30, 40)
    evidence = {place: documents[place][:length] for place in range(2 * count)}
    return draw_duels(collection_of(2 * count, 30), evidence, documents, tokens, 2 * count, 0).duels


def gains_of(duels: Sequence[Duel], model: Model) -> dict[str, Gains]:
    """By depth; a query is the vector of its own evidence."""

    def unit(ids: Sequence[int]) -> np.ndarray:
        vector = model(ids)
        return np.asarray(vector / np.linalg.norm(vector))

    return {
        name: Gains.of(
            np.array(
                [
                    [[unit(asked) @ unit(duel.document(side, depth)) for side in (0, 1)] for asked in duel.evidence]
                    for duel in duels
                ]
            )
        )
        for name, depth in DEPTHS.items()
    }


# ---- documents ----


@given(
    st.lists(st.integers(0, 9), max_size=30).map(tuple),
    st.lists(st.integers(10, 19), min_size=1, max_size=8).map(tuple),
    st.floats(0, 1),
)
@settings(max_examples=50)
def test_the_evidence_is_put_into_the_filler_and_nothing_else_changes(
    filler: tuple[int, ...], evidence: tuple[int, ...], depth: float
) -> None:
    duel = Duel((0, 1), (evidence, evidence[::-1]), filler)
    for side in (0, 1):
        document = duel.document(side, depth)
        assert tuple(one for one in document if one < 10) == filler
        assert tuple(document[duel.before(depth) :][: duel.length]) == duel.evidence[side]
    assert abs(duel.before(depth) - depth * len(filler)) <= 0.5


def test_queries_of_a_duel_share_length_and_filler_that_is_relevant_to_neither() -> None:
    documents = ids_of(40, 25)
    evidence = {place: documents[place][: 5 + place % 4] for place in range(20)}
    collection = collection_of(20, 20)
    drawn = draw_duels(collection, evidence, documents, 60, 14, seed=0)
    assert (len(drawn.duels), drawn.unwritten, drawn.left_out) == (7, 0, 0)
    asked = [query for duel in drawn.duels for query in duel.queries]
    assert len({*asked}) == 14
    for duel in drawn.duels:
        assert {len(duel.document(side, depth)) for side in (0, 1) for depth in DEPTHS.values()} == {60}
        for query, own in zip(duel.queries, duel.evidence, strict=True):
            assert list(own) == evidence[query][: duel.length]
        # Neighbours by length: little is cut.
        assert abs(len(evidence[duel.queries[0]]) - len(evidence[duel.queries[1]])) <= 1
        whole = [ids for place, ids in enumerate(documents) if place not in duel.queries]
        assert any(list(duel.filler[:25]) == ids for ids in whole)
        for place in duel.queries:
            assert str(documents[place])[1:-1] not in str(list(duel.filler))
    assert drawn == draw_duels(collection, evidence, documents, 60, 14, seed=0)
    assert drawn != draw_duels(collection, evidence, documents, 60, 14, seed=1)


def test_who_has_no_evidence_partner_or_filler_is_counted() -> None:
    documents = ids_of(12, 25)
    evidence = {place: documents[place][:5] for place in range(5)}
    drawn = draw_duels(collection_of(6, 6), evidence, documents, 60, 6, seed=0)
    assert (len(drawn.duels), drawn.unwritten, drawn.left_out) == (2, 1, 1)
    # 10 documents of 25 tokens are left of 12.
    assert draw_duels(collection_of(6, 6), evidence, documents, 250, 6, seed=0).duels
    short = draw_duels(collection_of(6, 6), evidence, documents, 256, 6, seed=0)
    assert (short.duels, short.left_out) == ([], 5)
    same = draw_duels(collection_of(4, 6), {key: [1, 2] for key in range(4)}, documents, 60, 4, seed=0)
    assert (same.duels, same.left_out) == ([], 4)


def test_a_query_that_is_a_document_is_neither_evidence_nor_filler() -> None:
    documents = ids_of(8, 25)
    evidence = {place: documents[place][:5] for place in range(2)}
    others = (frozenset({1}), frozenset[int]())
    assert not draw_duels(collection_of(2, 6, others), evidence, documents, 60, 2, 0).duels
    (duel,) = draw_duels(collection_of(2, 6, (frozenset({5}), frozenset({6}))), evidence, documents, 90, 2, 0).duels
    for place in (5, 6):
        assert str(documents[place])[1:-1] not in str(list(duel.filler))


def test_of_queries_with_a_common_document_one_is_drawn() -> None:
    shared = Collection("made up", ("a", "b", "c"), tuple("xyz"), ({0: 1.0}, {0: 1.0}, {1: 1.0}))
    documents = ids_of(3, 100)
    drawn = draw_duels(shared, {0: documents[0][:5], 1: documents[1][:5]}, documents, 60, 3, 0)
    ((one, other),) = (duel.queries for duel in drawn.duels)
    assert {one, other} in ({0, 2}, {1, 2})


# ---- gains ----


@given(st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=25)
def test_gains_are_those_of_a_loop(count: int, seed: int) -> None:
    similarities = np.random.default_rng(seed).normal(size=(count, 2, 2))
    start = np.random.default_rng(seed + 1).normal(size=(count, 2, 2)) + 2 * np.eye(2)
    gain, before = Gains.of(similarities), Gains.of(start)
    slow, earlier = (
        [float(one[a][a] - one[a][1 - a]) for one in values for a in (0, 1)] for values in (similarities, start)
    )
    assert gain.mean.known == pytest.approx(sum(slow) / len(slow))
    assert gain.score == pytest.approx(sum(float(one[a][a]) for one in similarities for a in (0, 1)) / len(slow))
    assert gain.change(before).value == pytest.approx(
        sum(a - b for a, b in zip(slow, earlier, strict=True)) / len(slow)
    )
    assert gain.won.value == pytest.approx(sum(one > 0 for one in slow) / len(slow))
    if count < 10:
        assert gain.mean.low is gain.change(before).low is None
    else:
        value, low, high = gain.mean
        assert low is not None
        assert high is not None
        assert low < value < high
        assert gain.kept(before) == pytest.approx(gain.mean.known / before.mean.known)
    assert (gain.won.low is None) == (2 * count < 10)


def test_ties_are_half_won_and_have_no_interval_of_the_gain() -> None:
    tie = Gains.of(np.ones((12, 2, 2)))
    assert (tie.mean, tie.won.value) == (Estimate(0.0), 0.5)
    assert tie.kept(tie) is None


@pytest.mark.parametrize(
    ("low", "kept", "lost"), [(None, None, False), (0.1, 0.6, False), (-0.1, 0.9, True), (0.1, 0.4, True)]
)
def test_evidence_is_lost_where_it_gains_nothing_or_less_than_half(
    low: float | None, kept: float | None, lost: bool
) -> None:
    assert is_lost(low, kept) == lost


# ---- models whose answer is known ----


def bag(dimension: int = 32) -> Model:
    embeddings = np.random.default_rng(7).normal(size=(WORDS, dimension))
    return lambda ids: np.asarray(embeddings[list(ids)].mean(axis=0))


def test_a_mean_of_input_embeddings_knows_no_place() -> None:
    found = gains_of(duels_of(12), bag())
    assert found["0"].mean.known > 0.2
    for one in found.values():
        assert one.mean.known == pytest.approx(found["0"].mean.known, abs=1e-12)
        assert one.change(found["0"]) == Estimate(0.0)
        assert one.kept(found["0"]) == pytest.approx(1.0)
        assert one.won.known > 0.9


def test_a_model_that_reads_only_the_beginning_loses_the_end() -> None:
    read = bag()
    found = gains_of(duels_of(12), lambda ids: read(ids[:20]))
    assert found["0"].mean.known > 0.4
    # A quarter of 50 tokens is before the evidence: 8 of its 10 tokens are among the first 20.
    assert 0 < found["1/4"].mean.known < found["0"].mean.known
    for depth in ("1/2", "3/4", "1"):
        assert (found[depth].mean.known, found[depth].won.value) == (0.0, 0.5)
        change, _, high = found[depth].change(found["0"])
        assert high is not None
        assert change < high < 0


def test_random_vectors_win_half() -> None:
    generator = np.random.default_rng(3)
    found = gains_of(duels_of(30), lambda ids: generator.normal(size=64))
    for one in found.values():
        _, low, high = one.won
        assert low is not None
        assert high is not None
        assert low < 0.5 < high
        assert abs(one.mean.known) < 0.1
        assert (one.mean.low or -1) < 0.02


# ---- findings ----


def position_rows(gains: Sequence[float], half: float = 0.02) -> list[dict[str, Any]]:
    cells = [
        (
            name,
            200 * depth,
            gain,
            gain - half,
            gain + half,
            gain - gains[0],
            gain - gains[0] - half,
            gain - gains[0] + half,
            gain / gains[0] if gains[0] > half else None,
        )
        for (name, depth), gain in zip(DEPTHS.items(), gains, strict=True)
    ]
    return rows_of("position", "depth tokens_before gain gain_low gain_high change change_low change_high kept", *cells)


def findings_of(gains: Sequence[float], half: float = 0.02, truncated: int = 0, known: bool = True) -> dict[str, Any]:
    rows = position_rows(gains, half)
    if not known:
        rows = [row | {"gain_low": None, "gain_high": None, "change_low": None, "change_high": None} for row in rows]
    tables = {
        "position": rows,
        "position_summary": rows_of(
            "position_summary", "length_limit documents truncated", (254, 100, truncated), data_set="mine"
        ),
    }
    return {one.name: one for one in found_by.findings(lambda name: tables.get(name, []), PositionSettings(corpora=()))}


@pytest.mark.parametrize(
    ("gains", "level"),
    [
        ((0.2, 0.12, 0.16, 0.12, 0.14), "ok"),
        ((0.2, 0.2, 0.2, 0.2, 0.2), "ok"),
        ((0.2, 0.12, 0.12, 0.12, 0.09), "look"),
        ((0.1, 0.12, 0.12, 0.15, 0.25), "look"),
        ((0.0, 0.0, 0.0, 0.0, 0.0), "not measured"),
    ],
)
def test_less_than_half_at_one_place_is_worth_a_look(gains: tuple[float, ...], level: str) -> None:
    assert findings_of(gains)["evidence"].level == level


def test_a_finding_names_the_place_and_says_which_end_counts() -> None:
    early = findings_of((0.2, 0.12, 0.12, 0.12, 0.05))["evidence"]
    assert "0.050, 25% of that, after 200 tokens (-0.150 [-0.170, -0.130])" in early.sentence
    assert (early.value, early.low, early.high) == pytest.approx((-0.15, -0.17, -0.13))
    assert "says late counts less" in early.meaning
    late = findings_of((0.05, 0.12, 0.12, 0.12, 0.2))["evidence"]
    assert "says early counts less" in late.meaning
    # Half as much, but within noise.
    assert findings_of((0.2, 0.09, 0.12, 0.12, 0.15), half=0.15)["evidence"].level == "ok"
    assert findings_of((0.2, 0.1, 0.1, 0.1, 0.05), known=False)["evidence"].level == "not measured"


@pytest.mark.parametrize(("truncated", "level"), [(0, "ok"), (4, "ok"), (5, "look"), (100, "look")])
def test_documents_longer_than_what_is_read(truncated: int, level: str) -> None:
    found = findings_of((0.2, 0.2, 0.2, 0.2, 0.2), truncated=truncated)["beyond"]
    assert found.level == level
    assert "254 tokens are read" in found.sentence
    assert f"{truncated}% of the 100 documents" in found.sentence


def test_nothing_measured_nothing_found() -> None:
    assert not [*found_by.findings(lambda name: [], PositionSettings(corpora=()))]
    assert section({"position": [], "position_summary": []}) is None


# ---- the step ----

NOUNS = tuple(ENGLISH.split()[:70])


def sentence(place: int, words: int) -> str:
    drawn = np.random.default_rng(place).choice(NOUNS, words)
    return " ".join(drawn) + "."


def texts(count: int, words: int = 30) -> list[str]:
    return [f"{sentence(place, words // 2)} {sentence(1_000 + place, words // 2)}" for place in range(count)]


def test_the_step_measures_what_a_loop_measures(tiny: Checkpoint, tmp_path: Path, one_thread: None) -> None:
    documents = texts(30)
    queries = [f"which {sentence(place, 6)}" for place in range(24)]
    run = run_on(tiny, tmp_path, "position", documents, queries, tokens=48, evidence_tokens=16)
    tables = tables_of(run, "position")
    (summary,) = tables["position_summary"]
    rows = {row["depth"]: row for row in tables["position"]}
    assert [*rows] == ["alone", *DEPTHS, "beyond"]
    assert (summary["tokens"], summary["queries"], summary["documents"]) == (48, 24, 30)
    assert (summary["length_limit"], summary["truncated"]) == (tiny.content_limit, 0)

    encoder = Encoder(tiny.reading("document"))
    evidence = {place: start_of(documents[place], 16, encoder.own_ids) for place in range(24)}
    # The collection is read in an order of its own, which decides on partners and fillers.
    known = read_collection(staged_collection(run, run.settings(PositionSettings))).collection
    ids = encoder.own_ids(known.documents)
    by_place = {place: evidence[documents.index(known.documents[place])] for r in known.relevant for place in r}
    duels = draw_duels(known, by_place, ids, 48, 24, 0).duels

    def cosine(one: np.ndarray, other: np.ndarray) -> float:
        return float(one.astype(float) @ other / np.linalg.norm(one) / np.linalg.norm(other))

    for name, depth in DEPTHS.items():
        gains, scores = [], []
        for duel in duels:
            for side, query in enumerate(duel.queries):
                asked = Encoder(tiny.reading("query")).encode_texts([known.queries[query]])[0]
                own, other = (
                    encoder.encode_ids([tiny.with_special_tokens(duel.document(one, depth))])[0]
                    for one in (side, 1 - side)
                )
                scores.append(cosine(asked, own))
                gains.append(cosine(asked, own) - cosine(asked, other))
        assert rows[name]["gain"] == pytest.approx(np.mean(gains), abs=1e-6)
        assert rows[name]["score"] == pytest.approx(np.mean(scores), abs=1e-6)
        assert rows[name]["won"] == pytest.approx(np.mean(np.array(gains) > 0))
        assert rows[name]["tokens_before"] == pytest.approx(depth * (48 - summary["evidence_tokens"]), abs=0.5)
        # Words are the same wherever they stand.
        assert rows[name]["words_gain"] == rows["beyond"]["words_gain"]
    beyond = rows["beyond"]
    assert (beyond["gain"], beyond["won"], beyond["score"], beyond["won_low"]) == (0.0, 0.5, None, None)


def test_behind_the_limit_both_documents_are_read_as_the_same_tokens(tiny: Checkpoint) -> None:
    limit = tiny.content_limit
    filler, one, other = ids_of(3, limit + 5)
    read = [tiny.cut([*filler[:limit], *evidence], limit) for evidence in (one[:9], other[:9])]
    assert read[0] == read[1]


def test_on_the_embedded_sample(tiny: Checkpoint, tmp_path: Path, one_thread: None) -> None:
    tables = tables_of(run_of(tiny, tmp_path, "position", moved=20), "position")
    (summary,) = tables["position_summary"]
    assert summary["queries"] >= 16
    assert summary["queries"] + summary["unwritten"] + summary["left_out"] == 20
    assert [row["queries"] for row in tables["position"]] == [summary["queries"]] * 7
    # More than 62 tokens are not read of most passages.
    assert summary["truncated"] > 100
    found = {
        one.name: one
        for one in found_by.findings(lambda name: tables.get(name, []), PositionSettings(corpora=(), moved=20))
    }
    assert found["beyond"].level == "look"
    shown = section(tables)
    assert shown is not None
    assert shown.title == "Position of evidence"
    assert len(shown.parts) == 3


def test_a_collection_without_filler_gets_a_note(tiny: Checkpoint, tmp_path: Path) -> None:
    few = run_on(tiny, tmp_path, "position", texts(4, 6), [f"which {sentence(place, 4)}" for place in range(4)])
    (note,) = tables_of(few, "position")["note"]
    assert note["text"].startswith("Skipped position: no two queries have evidence")


def test_one_query_is_too_few(tiny: Checkpoint, tmp_path: Path) -> None:
    (note,) = tables_of(run_on(tiny, tmp_path, "position", texts(9), ["which river"]), "position")["note"]
    assert note["text"].startswith("Skipped position: ")


def test_evidence_that_the_tokenizer_cannot_write_is_counted(tiny: Checkpoint, tmp_path: Path) -> None:
    documents = [*texts(20), "ជំរាបសួរ ពិភពលោក ថ្ងៃនេះ ល្អណាស់", "こんにちは 世界 今日は いい天気"]
    queries = [f"which {sentence(place, 6)}" for place in range(22)]
    tables = tables_of(run_on(tiny, tmp_path, "position", documents, queries, tokens=48), "position")
    assert tables["position_summary"][0]["unwritten"] == 2
    assert tables["position"][0]["queries"] == 20
