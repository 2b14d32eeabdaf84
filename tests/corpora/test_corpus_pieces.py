"""Large files of the hub are read in random pieces: each line in one piece, the same pieces from wire and cache."""

from __future__ import annotations

import io
from collections import Counter
from statistics import mean

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_hub import COMMIT, FakeHub, json_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.corpora import pieces
from embaudit.corpora.draw import Draw
from embaudit.corpora.load import load_corpus
from embaudit.corpora.pieces import choose_pieces, lines_of
from embaudit.words.errors import CorpusError

ROWS = 3_000
PASSAGES = [
    {"_id": str(place), "title": "", "text": f"passage {place} " + "word " * (place % 7)} for place in range(ROWS)
]
SOURCE = f"hub:mteb/msmarco@{COMMIT}"


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LARGE_BYTES": 50_000, "READ_BYTES": 20_000, "PIECE_BYTES": 1_000, "TAIL_BYTES": 64}.items():
        monkeypatch.setattr(pieces, name, value)


@given(
    lines=st.lists(st.text(st.sampled_from("aü \r\u2028"), max_size=30), max_size=30),
    size=st.integers(1, 40),
    ends=st.booleans(),
    tail=st.integers(1, 9),
)
@settings(max_examples=300)
def test_all_pieces_together_have_every_line_once(lines: list[str], size: int, ends: bool, tail: int) -> None:
    content = "\n".join(lines).encode() + (b"\n" if ends and lines else b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "TAIL_BYTES", tail)
        starts = range(0, len(content), size)
        found = [lines_of(io.BytesIO(content), start, min(start + size, len(content))) for start in starts]
    assert b"".join(found) == content
    assert all(not part or part.endswith(b"\n") for part in found[:-1]) or not ends


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert lines_of(io.BytesIO(b"\xef\xbb\xbfa\nb\n"), 0, 4) == b"a\n"


def test_every_piece_is_as_likely_and_their_bytes_are_what_is_read() -> None:
    sizes = {"a": [1_000] * 60, "b": [1_000] * 40}
    counts: Counter[tuple[str, int]] = Counter()
    for seed in range(1_000):
        chosen = choose_pieces(sizes, seed)
        assert chosen.share == pytest.approx(0.2)
        counts.update((name, piece) for name, places in chosen.chosen.items() for piece in places)
    # 200 each, with a standard deviation of 13.
    assert len(counts) == 100
    assert max(abs(count - 200) for count in counts.values()) < 60


def test_a_large_file_is_read_in_pieces_and_the_report_says_so(hub: FakeHub) -> None:
    hub.repositories["mteb/msmarco"] = {"corpus.jsonl": (content := json_lines(PASSAGES))}
    corpus = load_corpus("msmarco", SOURCE, draw=Draw(rows=60, seed=1))
    counts = corpus.counts
    assert counts.kept == 60
    assert counts.share_read == pytest.approx(20_000 / len(content), rel=0.06)
    assert counts.read == pytest.approx(counts.share_read * ROWS, rel=0.15)
    assert str(counts).startswith(
        f"{counts.read} rows read in random pieces, {counts.share_read:.1%} of the source: 60 "
    )
    assert 0 < hub.sent < len(content) / 2
    places = [int(text.external_id or -1) for text in corpus.texts]
    assert places == sorted(places)
    # Another seed reads other pieces, the same one the same rows: from the wire, and from the cache.
    assert load_corpus("msmarco", SOURCE, draw=Draw(rows=60, seed=2)).corpus_id != corpus.corpus_id
    assert load_corpus("msmarco", SOURCE).counts.read == ROWS
    hub.sent = 0
    again = load_corpus("msmarco", SOURCE, draw=Draw(rows=60, seed=1))
    assert (again.corpus_id, again.counts, hub.sent) == (corpus.corpus_id, counts, 0)


@pytest.mark.slow
def test_every_row_is_as_likely_however_long_its_neighbours_are(hub: FakeHub) -> None:
    # Short lines first: a piece of them holds many more rows than one of the long lines at the end.
    passages = [{"text": f"{place} " + "x" * (0 if place < ROWS / 2 else 60)} for place in range(ROWS)]
    hub.repositories["mteb/msmarco"] = {"corpus.jsonl": json_lines(passages)}
    load_corpus("msmarco", SOURCE)
    means = []
    for seed in range(40):
        texts = load_corpus("msmarco", SOURCE, draw=Draw(rows=10_000, seed=seed)).texts
        means.append(mean(int(text.text.split()[0]) for text in texts))
    # Of 20 pieces of uniform places: a standard error of about 35.
    assert mean(means) == pytest.approx(ROWS / 2, abs=140)


def test_the_first_rows_and_a_small_file_are_read_as_they_stand(hub: FakeHub) -> None:
    hub.repositories["mteb/msmarco"] = {"corpus.jsonl": json_lines(PASSAGES)}
    first = load_corpus("msmarco", SOURCE, draw=Draw(rows=5))
    assert [text.external_id for text in first.texts] == list("01234")
    assert (
        load_corpus("msmarco", f"hub:mteb/msmarco/corpus.jsonl[:40]@{COMMIT}", draw=Draw(rows=5, seed=1)).counts.read
        == 40
    )
    hub.repositories["org/small"] = {"test.txt": b"one\ntwo\n"}
    small = load_corpus("wikipedia", "hub:org/small", draw=Draw(rows=1, seed=1)).counts
    assert (small.read, small.share_read) == (2, 1.0)


def parquet(rows: list[dict[str, str]], group: int) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer, row_group_size=group, compression="none", use_dictionary=False)
    return buffer.getvalue()


def test_shards_of_parquet_and_lines_have_pieces_over_all_files(hub: FakeHub) -> None:
    halves = PASSAGES[: ROWS // 2], PASSAGES[ROWS // 2 :]
    hub.repositories["org/p"] = {
        f"data/test-{number:05d}-of-00002.parquet": parquet(half, 50) for number, half in enumerate(halves)
    }
    hub.repositories["org/t"] = {
        f"test/{number}.txt": "\n".join(row["text"] for row in half).encode() for number, half in enumerate(halves)
    }
    for source in ("hub:org/p", "hub:org/t/test/*.txt"):
        corpus = load_corpus("wikipedia", source, draw=Draw(rows=400, seed=0))
        assert 0.05 < corpus.counts.share_read < 0.6
        numbers = [int(text.text.split()[1]) for text in corpus.texts]
        assert min(numbers) < ROWS / 2 < max(numbers)
        assert numbers == sorted(numbers)


def test_a_row_that_cannot_be_parsed_names_the_file(hub: FakeHub) -> None:
    content = json_lines(PASSAGES)
    hub.repositories["mteb/msmarco"] = {"corpus.jsonl": content.replace(b'{"_id"', b'{_id"')}
    with pytest.raises(CorpusError, match=r"hub:mteb/msmarco/corpus\.jsonl@0123456789ab cannot be read") as caught:
        load_corpus("msmarco", SOURCE, draw=Draw(rows=5, seed=1))
    assert "hf download" in caught.value.next_step


def test_offline_pieces_come_from_the_cache_or_not_at_all(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repositories["mteb/msmarco"] = {"corpus.jsonl": json_lines(PASSAGES)}
    load_corpus("msmarco", SOURCE)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load_corpus("msmarco", SOURCE, draw=Draw(rows=5, seed=1)).counts.kept == 5
    with pytest.raises(CorpusError, match="HF_HUB_OFFLINE"):
        load_corpus("msmarco", "hub:mteb/other/corpus.jsonl", draw=Draw(rows=5, seed=1))
