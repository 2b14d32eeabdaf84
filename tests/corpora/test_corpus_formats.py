"""Texts from every file format: one content, one id, whatever carried it."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embaudit.corpora import Corpus, load_corpus
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]

TEXTS = ["A first sentence.", 'With "quotes", commas', "Ünïcode \u2028 inside"]


def encodings(texts: list[str]) -> dict[str, bytes]:
    """The same texts in every format, by file name."""
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerows([["id", "Text"], *([number, text] for number, text in enumerate(texts))])
    parquet = io.BytesIO()
    pq.write_table(pa.table({"text": texts, "vector": [[0.5]] * len(texts)}), parquet)
    arrow = io.BytesIO()
    with pa.ipc.new_stream(arrow, pa.schema([("text", pa.string())])) as stream:
        stream.write_table(pa.table({"text": pa.array(texts, pa.string())}))
    lines = "".join(json.dumps({"sentence": text}) + "\n" for text in texts).encode()
    plain = "".join(f"{text}\n" for text in texts).encode()
    return {
        "a.txt": plain,
        "a.txt.gz": gzip.compress(plain, mtime=0),
        "crlf.txt": plain.replace(b"\n", b"\r\n"),
        "bom.txt": b"\xef\xbb\xbf" + plain,
        "a.csv": table.getvalue().encode(),
        "a.csv.gz": gzip.compress(table.getvalue().encode(), mtime=0),
        "a.jsonl": lines,
        "A.JSONL.GZ": gzip.compress(lines, mtime=0),
        "lines.json": lines,
        "a.json": json.dumps(texts).encode(),
        "objects.json": json.dumps([{"contents": text} for text in texts]).encode(),
        "a.parquet": parquet.getvalue(),
        "a.arrow": arrow.getvalue(),
    }


@pytest.mark.parametrize("name", encodings(TEXTS))
def test_every_format_gives_the_same_corpus(name: str, write: Write) -> None:
    corpus = load_corpus("wikipedia", write(name, encodings(TEXTS)[name]))
    assert [text.text for text in corpus.texts] == TEXTS
    assert corpus.corpus_id == load_corpus("wikipedia", write("other.txt", "\n".join(TEXTS))).corpus_id


line = st.text(st.characters(exclude_characters="\0\n\t", exclude_categories=["Cs"]), max_size=30)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(line, min_size=1, max_size=8))
def test_id_and_counts_do_not_depend_on_the_format(tmp_path: Path, texts: list[str]) -> None:
    outcomes = set()
    for name, content in encodings(texts).items():
        (tmp_path / name).write_bytes(content)
        corpus = loaded_or_error("wikipedia", tmp_path / name)
        if isinstance(corpus, CorpusError):
            outcomes.add(corpus.happened.split(":")[0])
        else:
            assert_counts_add_up(corpus)
            assert corpus.counts.kept == len({text.text for text in corpus.texts})
            outcomes.add(corpus.corpus_id)
    assert len(outcomes) == 1


def loaded_or_error(name: str, path: Path) -> Corpus | CorpusError:
    try:
        return load_corpus(name, str(path))
    except CorpusError as error:
        return error


def assert_counts_add_up(corpus: Corpus) -> None:
    counts = corpus.counts
    dropped = counts.duplicate + counts.blank + counts.broken + counts.undecodable
    assert counts.read == counts.kept + dropped
    assert counts.kept == len(corpus.texts) + len(corpus.pairs) > 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200),
    st.sampled_from([".txt", ".csv", ".tsv", ".jsonl", ".json", ".parquet", ".arrow", ".txt.gz"]),
)
def test_any_bytes_give_a_corpus_or_a_corpus_error(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(content)
    for name in ("wikipedia", "sts", "msmarco-hard-negatives"):
        corpus = loaded_or_error(name, path)
        if isinstance(corpus, CorpusError):
            assert corpus.happened
            assert corpus.next_step
        else:
            assert_counts_add_up(corpus)


def test_labels_titles_and_ids_are_kept(write: Write) -> None:
    path = write("docs.csv", "Category,Title,Text,id\nnews, A title ,The text.,7\n")
    text = load_corpus("longdocs", path).texts[0]
    assert (text.text, text.title, text.label, text.external_id) == ("The text.", "A title", "news", "7")
    assert load_corpus("msmarco", path).texts[0].text == "A title The text."


def test_a_named_label_wins_over_its_number_and_zero_is_a_label(write: Write) -> None:
    rows = '{"text": "a", "label": 0, "label_text": "bad"}\n{"text": "b", "label": 0}\n'
    assert [text.label for text in load_corpus("longdocs", write("x.jsonl", rows)).texts] == ["bad", "0"]


def test_msmarco_collection_has_ids_and_no_header(write: Write) -> None:
    corpus = load_corpus("msmarco", write("collection.tsv", '0\tA "passage\n1\tAnother\n'))
    assert [(text.external_id, text.text) for text in corpus.texts] == [("0", 'A "passage'), ("1", "Another")]


def test_labels_change_the_id_and_external_ids_do_not(write: Write) -> None:
    def corpus_id(row: str) -> str:
        return load_corpus("longdocs", write("x.jsonl", row)).corpus_id

    assert corpus_id('{"text": "a", "id": "1"}') == corpus_id('{"text": " a ", "id": "2"}')
    assert corpus_id('{"text": "a", "label": "x"}') != corpus_id('{"text": "a", "label": "y"}')
