"""Facts about the public data files beside the checkout (skipped where they are missing)."""

from __future__ import annotations

from pathlib import Path

import pytest

from embaudit.corpora import load_corpus


def test_wikipedia_sample(shared_data: Path) -> None:
    corpus = load_corpus("wikipedia", str(shared_data / "wikipedia" / "wiki1m_sample.txt"))
    # 11 914 line ends and one last line that is cut (inside a word, not inside a character).
    assert corpus.counts.read == 11_915
    assert corpus.counts.kept + corpus.counts.duplicate == 11_915
    assert corpus.texts[-1].text.endswith("elderly citizen")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "read", "unscored"), [("stsb", 8_628, 0), ("sick", 9_927, 0), ("semeval-sts", 26_775, 13_414)]
)
def test_sts_files_are_read_as_they_are(folder: str, read: int, unscored: int, shared_data: Path) -> None:
    corpus = load_corpus("sts", str(shared_data / "sts" / folder))
    assert corpus.counts.read == read
    assert corpus.counts.broken == corpus.counts.undecodable == corpus.counts.blank == 0
    assert sum(pair.score is None for pair in corpus.pairs) == unscored


@pytest.mark.slow
def test_beir_folders(shared_data: Path) -> None:
    scifact = str(shared_data / "retrieval" / "scifact")
    assert load_corpus("msmarco", scifact).counts.kept == 5_183
    assert load_corpus("msmarco-positives", scifact).counts.broken == 0
    passages = str(shared_data / "msmarco" / "passages-5k")
    assert load_corpus("msmarco", passages).counts.read == 5_000
    assert load_corpus("msmarco-queries", passages).counts.kept >= 43


def test_labelled_texts(shared_data: Path) -> None:
    folder = shared_data / "classification"
    reviews = load_corpus("longdocs", str(folder / "imdb_sample_texts.csv"))
    assert {text.label for text in reviews.texts} == {"negative", "positive"}
    groups = load_corpus("longdocs", str(folder / "mini_newsgroups.jsonl.gz"))
    assert groups.counts.read == 2_000
    assert len({text.label for text in groups.texts}) == 20


def test_published_pairs(shared_data: Path) -> None:
    corpus = load_corpus("sts", str(shared_data / "std" / "minilm_verification_pairs_250.json"))
    assert corpus.counts.read == 250
    assert corpus.counts.kept == 229
