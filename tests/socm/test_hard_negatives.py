"""Mining: BM25 against its formula written out, cosines against a loop, ties, judged passages, real data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.corpora.catalog import MinedSource, mined_corpus
from embaudit.corpora.folders import read_retrieval
from embaudit.corpora.load import load_corpus
from embaudit.measures.socm.lengths import by_bm25, by_cosine
from embaudit.words.errors import CorpusError, MeasureError

PASSAGES = [
    "stone bridge river river",
    "river water flows",
    "iron gate",
    "river",
    "music poem song music music music music",
]


def bm25(query: str, passages: list[str], k1: float = 1.5, b: float = 0.75) -> list[float]:
    """Lucene's variant, word by word."""
    words = [passage.split() for passage in passages]
    mean = sum(map(len, words)) / len(words)
    scores = [0.0] * len(words)
    for term in query.split():
        containing = sum(term in passage for passage in words)
        idf = math.log(1 + (len(words) - containing + 0.5) / (containing + 0.5))
        for place, passage in enumerate(words):
            count = passage.count(term)
            scores[place] += idf * count / (count + k1 * (1 - b + b * len(passage) / mean))
    return scores


@pytest.mark.parametrize("query", ["river", "river stone", "music river gate", "song poem water"])
def test_bm25_ranks_as_its_formula(query: str) -> None:
    scores = bm25(query, PASSAGES)
    expected = sorted(range(5), key=lambda place: (-round(scores[place], 6), place))
    assert by_bm25([query], PASSAGES, [set()], count=5) == [expected]


def test_judged_passages_are_never_negatives_and_fewer_may_be_left() -> None:
    assert by_bm25(["river stone"], PASSAGES, [{0}], count=1) == [[3]]
    assert by_bm25(["river"], PASSAGES, [{0, 1, 2, 3, 4}], count=2) == [[]]
    assert len(by_bm25(["river"], PASSAGES, [{3}], count=9)[0]) == 4


def test_a_query_of_unknown_words_takes_the_first_passage() -> None:
    assert by_bm25(["zzz", "", "the of"], PASSAGES, [set(), {0}, set()]) == [[0], [1], [0]]


def test_passages_without_words_are_an_error() -> None:
    with pytest.raises(MeasureError, match="no word in the 2 passages"):
        by_bm25(["river"], ["", "!!"], [set()])


@given(seed=st.integers(0, 10**6), count=st.integers(1, 6))
@settings(max_examples=40)
def test_cosines_rank_as_a_loop_with_ties_by_place(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    # Few different vectors: many ties.
    pool = np.eye(3)
    queries, passages = pool[generator.integers(0, 3, 4)], pool[generator.integers(0, 3, 9)]
    relevant = [set(generator.choice(9, generator.integers(0, 4), replace=False).tolist()) for _ in range(4)]
    found = by_cosine(queries, passages, relevant, count)
    for query, judged, places in zip(queries, relevant, found, strict=True):
        ranked = sorted((place for place in range(9) if place not in judged), key=lambda p: (-(query @ passages[p]), p))
        assert places == ranked[:count]


def test_many_queries_go_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    queries, passages = generator.normal(size=(10, 4)), generator.normal(size=(7, 4))
    whole = by_cosine(queries, passages, [set()] * 10, 3)
    monkeypatch.setattr("embaudit.measures.socm.lengths.SCORES_PER_STEP", 15)
    assert by_cosine(queries, passages, [set()] * 10, 3) == whole


# ---- folders and sources ----


def beir(folder: Path, qrels: str) -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        "\n".join(f'{{"_id": "p{i}", "title": "", "text": "{text}"}}' for i, text in enumerate(PASSAGES))
    )
    (folder / "queries.jsonl").write_text(
        '{"_id": "q0", "text": "river stone"}\n{"_id": "q1", "text": "music"}\n{"_id": "q2", "text": "unjudged"}'
    )
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + qrels)
    return folder


def test_a_folder_is_read_with_the_queries_that_are_judged(tmp_path: Path) -> None:
    task = read_retrieval(beir(tmp_path / "beir", "q0\tp0\t1\nq0\tp1\t0\nq1\tp4\t2\nq1\tmissing\t1\n"))
    assert task.queries == ("river stone", "music")
    assert task.passages == tuple(PASSAGES)
    assert task.relevant == (frozenset({0}), frozenset({4}))


def test_a_query_is_no_negative_of_itself(tmp_path: Path) -> None:
    """Where queries are documents, the best passage that is not judged relevant would be the query's own."""
    folder = beir(tmp_path / "beir", "p0\tp1\t1\np0\tp0\t0\nq1\tp4\t2\nq1\tp3\t0\n")
    with (folder / "queries.jsonl").open("a") as file:
        file.write('\n{"_id": "p0", "text": "stone bridge river river"}')
    task = read_retrieval(folder)
    assert dict(zip(task.queries, task.own, strict=True)) == {"music": frozenset(), PASSAGES[0]: frozenset({0})}
    place = task.queries.index(PASSAGES[0])
    assert by_bm25([PASSAGES[0]], task.passages, [task.relevant[place] | task.own[place]]) == [[3]]
    listed = load_corpus("msmarco-hard-negatives", str(folder))
    assert [(pair.first, pair.second) for pair in listed.pairs] == [("music", "river")]


def test_a_folder_without_relevant_passages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="list no relevant passage"):
        read_retrieval(beir(tmp_path / "beir", "q0\tp0\t0\n"))


def test_the_source_says_how_and_where(tmp_path: Path) -> None:
    name = "msmarco-hard-negatives"
    for method in ("bm25", "checkpoint"):
        source = MinedSource.parse(name, f"mined:{method}:{tmp_path}")
        assert source == MinedSource(method, tmp_path)  # type: ignore[arg-type]
        assert str(source) == f"mined:{method}:{tmp_path}"
    assert MinedSource.parse(name, "sample") is None
    assert MinedSource.parse("wikipedia", "hub:owner/name") is None


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("msmarco-hard-negatives", "mined:bm26:/tmp", "does not give a mining method"),
        ("msmarco-hard-negatives", "mined:bm25:", "does not give a mining method"),
        ("msmarco-hard-negatives", "mined:/tmp", "does not give a mining method"),
        ("msmarco-hard-negatives", "mined:bm25:/no/such/folder", "no folder /no/such/folder"),
        ("msmarco-positives", "mined:bm25:/tmp", "cannot be mined"),
        ("wikipedia", "mined:bm25:/tmp", "cannot be mined"),
    ],
)
def test_a_source_that_cannot_be_mined_is_refused(name: str, source: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        MinedSource.parse(name, source)


def test_mined_pairs_are_a_corpus(tmp_path: Path) -> None:
    source = MinedSource("bm25", tmp_path)
    corpus = mined_corpus("msmarco-hard-negatives", source, [("a", "b"), ("a", "b"), ("a", "")])
    assert (corpus.kind, len(corpus.pairs), corpus.counts.duplicate, corpus.counts.blank) == ("pairs", 1, 1, 1)
    assert (corpus.pairs[0].relation, corpus.source) == ("hard_negative", f"mined:bm25:{tmp_path}")
    with pytest.raises(CorpusError, match="no hard negative"):
        mined_corpus("msmarco-hard-negatives", source, [])


@pytest.mark.slow
def test_real_negatives_look_relevant_and_are_not(shared: Path) -> None:
    task = read_retrieval(shared / "data/retrieval/scifact")
    queries, relevant = task.queries[:40], task.relevant[:40]
    found = by_bm25(queries, task.passages, relevant, count=2)
    assert all(len(places) == 2 for places in found)
    alike = 0
    for query, judged, places in zip(queries, relevant, found, strict=True):
        assert not judged & set(places)
        words = {word.strip(".,").lower() for word in query.split() if len(word) > 4}
        alike += any(word in task.passages[places[0]].lower() for word in words)
    assert alike >= 38
