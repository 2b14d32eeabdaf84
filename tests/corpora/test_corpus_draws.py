"""Drawing from a source while it streams: the rows that a draw of the whole takes, and counts that add up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from fake_hub import FakeHub, json_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.corpora import load_corpus
from embaudit.corpora.draw import Draw, pair_text
from embaudit.corpora.tally import BLANK, Flaw, Text, TextPair, keep_rows

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
