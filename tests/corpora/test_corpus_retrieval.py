"""MS MARCO's four corpora: BEIR folders, triples and pair files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_hub import json_lines

from embaudit.corpora import IngestCounts, TextPair, load_corpus
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]


@pytest.fixture
def beir(write: Write, tmp_path: Path) -> str:
    passages = [{"_id": "p1", "title": "T", "text": "one"}, {"_id": "p2", "title": "", "text": "two"}]
    write("beir/corpus.jsonl", json_lines(passages))
    write("beir/queries.jsonl", json_lines([{"_id": "q1", "text": "first?"}, {"_id": "q2", "text": "second?"}]))
    write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\tp1\t1\nq1\tp2\t0\n")
    write("beir/qrels/train.tsv", "q2 0 p1 0\nq2\tp9\t0\n\nnonsense\n")
    return str(tmp_path / "beir")


def test_a_beir_folder_gives_all_four_corpora(beir: str) -> None:
    assert [text.text for text in load_corpus("msmarco", beir).texts] == ["T one", "two"]
    assert [text.external_id for text in load_corpus("msmarco-queries", beir).texts] == ["q1", "q2"]
    assert load_corpus("msmarco-positives", beir).pairs == (TextPair("first?", "T one", None, "positive"),)
    negatives = load_corpus("msmarco-hard-negatives", beir)
    assert negatives.pairs == (
        TextPair("first?", "two", None, "hard_negative"),
        TextPair("second?", "T one", None, "hard_negative"),
    )
    # Broken: p9 is in no corpus.jsonl, "nonsense" is no judgement.
    assert negatives.counts == IngestCounts(5, 2, 0, 1, 2, 0)


def test_missing_parts_of_a_beir_folder_are_named(write: Write, tmp_path: Path) -> None:
    write("half/corpus.jsonl", '{"_id": "p1", "text": "one"}\n')
    with pytest.raises(CorpusError, match=r"queries\.jsonl"):
        load_corpus("msmarco-queries", str(tmp_path / "half"))
    with pytest.raises(CorpusError, match="relevance judgements"):
        load_corpus("msmarco-hard-negatives", str(tmp_path / "half"))
    write("half/qrels.tsv", "q1\tp1\t1\n")
    with pytest.raises(CorpusError, match="no judgements with score 0"):
        load_corpus("msmarco-hard-negatives", str(tmp_path / "half"))


def test_triples_give_negatives_or_positives(write: Write) -> None:
    triples = [
        {"query": "q", "positive": "p", "negative": "n"},
        {"query": "q", "positive": "p", "negative_1": "n1", "negative_2": "n2", "negative_3": None},
        {"anchor": "r", "positive": "s", "negatives": ["t", "u"], "score": 3.5},
        {"query": "lonely"},
    ]
    path = write("triples.jsonl", json_lines(triples))
    negatives = load_corpus("msmarco-hard-negatives", path)
    expected = [("q", "n"), ("q", "n1"), ("q", "n2"), ("r", "t"), ("r", "u")]
    assert [(pair.first, pair.second) for pair in negatives.pairs] == expected
    assert {(pair.relation, pair.score) for pair in negatives.pairs} == {("hard_negative", None)}
    assert negatives.counts.broken == 1
    positives = load_corpus("msmarco-positives", path)
    assert [(pair.first, pair.second) for pair in positives.pairs] == [("q", "p"), ("r", "s")]
    assert positives.counts.duplicate == 1


def test_beir_and_triples_of_the_same_pairs_are_one_corpus(beir: str, write: Write) -> None:
    rows = [{"query": "first?", "negative": "two"}, {"query": "second?", "negative": "T one"}]
    from_triples = load_corpus("msmarco-hard-negatives", write("x.jsonl", json_lines(rows)))
    assert from_triples.corpus_id == load_corpus("msmarco-hard-negatives", beir).corpus_id


def test_relation_is_part_of_a_pair_and_of_the_id(write: Write) -> None:
    path = write("pairs.tsv", "a question\ta passage\nanother\tone more\n")
    negatives, positives = load_corpus("msmarco-hard-negatives", path), load_corpus("msmarco-positives", path)
    assert negatives.corpus_id != positives.corpus_id
    rows = [{"s1": "a", "s2": "b"}, {"s1": "a", "s2": "b", "relation": "positive"}]
    assert load_corpus("sts", write("rel.jsonl", json_lines(rows))).counts.kept == 2
