"""Drawing from a source while it streams: the rows that a draw of the whole takes, and counts that add up."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from fake_hub import FakeHub, json_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.draw import BLANK, Draw, Flaw, Text, TextPair, keep_rows, pair_text
from embaudit.corpora.load import load_corpus

LINES = st.lists(st.sampled_from([*(f"text {place}" for place in range(12)), "", "broken"]), max_size=60)


def rows_of(lines: list[str]) -> list[Text | Flaw]:
    return [Flaw("broken", "because") if line == "broken" else Text(line) if line else BLANK for line in lines]


@given(lines=LINES, rows=st.integers(1, 14), seed=st.integers(0, 5))
@settings(max_examples=150)
def test_what_streams_by_is_drawn_as_from_the_whole(lines: list[str], rows: int, seed: int) -> None:
    texts = list(dict.fromkeys(line for line in lines if line and line != "broken"))
    kept = keep_rows(rows_of(lines), Draw(rows=rows, seed=seed))
    drawn = [texts[place] for place in Draw(rows=rows, seed=seed).places(texts)]
    assert [row.text for row in kept.rows if isinstance(row, Text)] == drawn
    counts, seen = kept.counts, Counter(lines)
    assert counts.read == len(lines)
    assert (counts.kept, counts.blank, counts.broken) == (len(drawn), seen[""], seen["broken"])
    assert counts.duplicate == sum(seen[text] - 1 for text in drawn)
    assert counts.undrawn == sum(seen[text] for text in texts if text not in drawn)
    if len(texts) <= rows:
        assert counts == keep_rows(rows_of(lines)).counts


def test_pairs_are_drawn_by_both_sides_and_their_relation_is_part_of_them() -> None:
    pairs = [TextPair(f"q{place % 5}", f"p{place}", None, "positive") for place in range(20)]
    kept = keep_rows(pairs, Draw(rows=4, seed=1)).rows
    places = Draw(rows=4, seed=1).places([pair_text(pair.first, pair.second) for pair in pairs])
    assert list(kept) == [pairs[place] for place in places]
    both = [TextPair("a", "b", None, "positive"), TextPair("a", "b", None, "hard_negative"), TextPair("a", "b")]
    assert keep_rows(both * 2, Draw(rows=9, seed=1)).rows == tuple(both)


def test_a_draw_of_the_first_rows_reads_no_more_than_them() -> None:
    read: list[int] = []

    def rows() -> object:
        for place in range(100):
            read.append(place)
            yield Text(f"text {place % 50}")

    kept = keep_rows(rows(), Draw(rows=7))  # type: ignore[arg-type]
    assert (len(kept.rows), kept.counts.read, len(read)) == (7, 7, 7)


def test_a_large_corpus_of_the_hub_keeps_what_is_drawn_and_says_what_it_saw(hub: FakeHub) -> None:
    passages = [{"_id": str(n), "title": "", "text": f"passage {n}"} for n in range(5_000)]
    hub.repositories["mteb/msmarco"] = {"corpus.jsonl": json_lines([*passages, passages[0], {"text": ""}])}
    whole = load_corpus("msmarco", "hub:mteb/msmarco@main")
    draw = Draw(rows=40, seed=3)
    corpus = load_corpus("msmarco", "hub:mteb/msmarco@main", draw=draw)
    places = draw.places([text.text for text in whole.texts])
    assert [text.external_id for text in corpus.texts] == [str(place) for place in places]
    assert str(corpus.counts).startswith("5002 rows read: 40 kept, ")
    assert str(corpus.counts).endswith(", 4961 not drawn")
    assert corpus.counts.undrawn == 4_961 - corpus.counts.duplicate
    assert "draw" not in str(whole.counts)
    assert whole.corpus_id != corpus.corpus_id == load_corpus("msmarco", "hub:mteb/msmarco@main", draw=draw).corpus_id


@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_a_draw_from_a_draw_is_a_draw_from_the_whole(suffix: str, tmp_path: Path) -> None:
    """So what is kept of a source may be more than what a measure reads, or less than all, and changes no value."""
    file = tmp_path / f"texts.{suffix}"
    file.write_text("\n".join(["text", *(f"number {place}" for place in range(300))]))
    pool = [text.text for text in load_corpus("wikipedia", str(file), draw=Draw(rows=90, seed=4)).texts]
    whole = [text.text for text in load_corpus("wikipedia", str(file)).texts]
    for wanted in (1, 30, 90):
        draw = Draw(rows=wanted, seed=4)
        assert [pool[place] for place in draw.places(pool)] == [whole[place] for place in draw.places(whole)]


# ---- the embedded sample: every corpus of the catalogue loads from it, offline and complete ----


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
        "import sys; from embaudit.corpora.load import load_corpus; load_corpus('sts'); load_corpus('msmarco');"
        "print([m for m in ('torch', 'datasets', 'pandas', 'pyarrow', 'huggingface_hub', 'prefect', 'duckdb')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- facts about the public data files beside the checkout (skipped where they are missing) ----


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
