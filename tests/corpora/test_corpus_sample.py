"""The embedded sample: every corpus of the catalogue loads from it, offline and complete."""

from __future__ import annotations

import subprocess
import sys

import pytest

from embaudit.corpora import CORPORA, load_corpus


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_has_a_clean_sample(name: str) -> None:
    corpus = load_corpus(name)
    assert corpus.kind == CORPORA[name].kind
    assert corpus.counts.kept == corpus.counts.read == len(corpus.texts) + len(corpus.pairs) > 10
    assert bool(corpus.texts) == (corpus.kind == "texts")
    assert (corpus.source, corpus.revision) == ("sample", None)
    assert load_corpus(name).corpus_id == corpus.corpus_id


def test_sample_pairs_carry_their_relation() -> None:
    negatives, positives = load_corpus("msmarco-hard-negatives"), load_corpus("msmarco-positives")
    assert {pair.relation for pair in negatives.pairs} == {"hard_negative"}
    assert {pair.relation for pair in positives.pairs} == {"positive"}
    passages = {text.text for text in load_corpus("msmarco").texts}
    assert {pair.second for pair in negatives.pairs + positives.pairs} <= passages
    scores = [pair.score for pair in load_corpus("sts").pairs]
    assert min(scores) >= 0
    assert max(scores) <= 5


def test_passages_join_their_title_and_long_documents_do_not() -> None:
    passage, document = load_corpus("msmarco").texts[0], load_corpus("longdocs").texts[0]
    assert passage.title
    assert passage.text.startswith(f"{passage.title} ")
    assert document.title
    assert not document.text.startswith(document.title)
    assert document.label


def test_limit_keeps_the_first_rows() -> None:
    whole, first = load_corpus("wikipedia"), load_corpus("wikipedia", limit=7)
    assert first.texts == whole.texts[:7]
    assert first.counts.read == 7
    assert first.corpus_id != whole.corpus_id


def test_import_and_sample_need_no_heavy_library() -> None:
    code = (
        "import sys; from embaudit.corpora import load_corpus; load_corpus('sts'); load_corpus('msmarco');"
        "print([m for m in ('torch', 'datasets', 'pandas', 'pyarrow', 'huggingface_hub', 'prefect', 'duckdb')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
