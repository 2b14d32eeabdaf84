"""A file's columns are found or refused, never guessed: separators, nulls, encodings, values that are no text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embaudit.corpora import TextPair, load_corpus
from embaudit.corpora.judged import load_judged
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]

TEXTS = ["One, with a comma.", "Two; quoted", "Three"]
PAIRS = (TextPair("A man, singing.", "He sings.", 3.8), TextPair("It rains.", "Taxes, again.", 0.0))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("european.csv", 'id;text\n1;One, with a comma.\n2;"Two; quoted"\n3;Three\n'),
        ("label_first.csv", 'Label;Text\na;One, with a comma.\nb;"Two; quoted"\na;Three\n'),
        ("quoted.csv", '"id";"text"\n"1";"One, with a comma."\n"2";"Two; quoted"\n"3";"Three"\n'),
        ("told.csv", 'sep=;\nid;text\n1;One, with a comma.\n2;"Two; quoted"\n3;Three\n'),
        ("bars.csv", "id|text\n1|One, with a comma.\n2|Two; quoted\n3|Three\n"),
        ("marked.csv", b"\xef\xbb\xbf" + b'id;text\n1;One, with a comma.\n2;"Two; quoted"\n3;Three\n'),
        ("commas.tsv", 'id,text\n1,"One, with a comma."\n2,Two; quoted\n3,Three\n'),
        ("semicolons.tsv", 'id;text\n1;One, with a comma.\n2;"Two; quoted"\n3;Three\n'),
        ("tabs.csv", "id\ttext\n1\tOne, with a comma.\n2\tTwo; quoted\n3\tThree\n"),
        ("commas.csv", 'id,text\n1,"One, with a comma."\n2,Two; quoted\n3,Three\n'),
        ("lines.csv", 'text\n"One, with a comma."\nTwo; quoted\nThree\n'),
    ],
)
def test_the_separator_is_found(name: str, content: bytes | str, write: Write) -> None:
    corpus = load_corpus("longdocs", write(name, content))
    assert [text.text for text in corpus.texts] == TEXTS
    assert (corpus.counts.broken, corpus.counts.blank) == (0, 0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("headed.csv", "sentence1;sentence2;score\nA man, singing.;He sings.;3,8\nIt rains.;Taxes, again.;0\n"),
        ("stsb.csv", "A man, singing.;He sings.;3,8\nIt rains.;Taxes, again.;0,0\n"),
        ("semeval.txt", "3.8|A man, singing.|He sings.\n0|It rains.|Taxes, again.\n"),
        ("comma.csv", '"A man, singing.",He sings.,"3,8"\nIt rains.,"Taxes, again.",0\n'),
        ("unlike.csv", '"A man, singing.",He sings.,3.8\nIt rains.,"Taxes, again.",0.0\n'),
        ("tabs.csv", "A man, singing.\tHe sings.\t3,8\nIt rains.\tTaxes, again.\t0\n"),
    ],
)
def test_so_is_that_of_pairs_and_a_decimal_comma(name: str, content: str, write: Write) -> None:
    corpus = load_corpus("sts", write(name, content))
    assert corpus.pairs == PAIRS
    assert corpus.counts.broken == 0


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("x.csv", "1;One, and more\n2;Two\n3;Three\n", "semicolons"),
        ("x.csv", "1;One, too\n2;Two, too\n3;Three, too\n", "semicolons"),
        ("x.csv", "a|One|x\nb|Two|y\n", "vertical bars"),
        ("x.tsv", "1,One\n2,Two\n", "commas"),
    ],
)
def test_columns_without_a_header_are_refused_by_their_separator(
    name: str, content: str, named: str, write: Write
) -> None:
    path = write(name, content)
    with pytest.raises(CorpusError, match=f"may be separated by {named}") as caught:
        load_corpus("longdocs", path)
    # What it advises works.
    (header, *_) = [one for one in caught.value.next_step.split() if "text;" in one or one.endswith("text;")]
    assert load_corpus("longdocs", write(f"again-{name}", "text\n" + content.replace(",", " "))).counts.kept >= 2
    assert header.rstrip(";").endswith("text")


def test_lines_with_a_comma_are_no_ids_and_texts(write: Write) -> None:
    prose = "Well then, he said\nNo\nShe left, at last\nThe end, they say\n"
    with pytest.raises(CorpusError, match="does not fit any layout"):
        load_corpus("wikipedia", write("x.csv", prose))


@pytest.mark.parametrize(
    ("corpus", "row", "reason"),
    [
        ("wikipedia", {"text": None, "question": "What is it?"}, "text is null"),
        ("wikipedia", {"question": None, "text": None, "query": "q"}, "text is null"),
        ("msmarco-queries", {"query": None, "text": "a text"}, "query is null"),
        ("msmarco", {"text": None, "title": "", "body": "b"}, "text is null"),
        ("wikipedia", {"text": ["a", "b"]}, "text is a list"),
        ("wikipedia", {"text": {"en": "a"}}, "text is a struct"),
        ("wikipedia", {"text": 3.5}, "text is a number"),
        ("wikipedia", {"text": True}, "text is true or false"),
        ("sts", {"sentence1": None, "text1": "a", "sentence2": "b"}, "sentence1 is null"),
        ("sts", {"s1": "a", "s2": ["b"]}, "s2 is a list"),
        ("sts", {"s1": "a"}, "a side that is missing: it has only s1"),
        ("msmarco-hard-negatives", {"query": None, "anchor": "a", "negative": "b"}, "query is null"),
        ("msmarco-hard-negatives", {"query": "a", "negative": {"text": "b"}}, "hard_negative is a struct"),
    ],
)
def test_what_is_no_text_is_dropped_and_named(
    corpus: str, row: dict[str, object], reason: str, write: Write, tmp_path: Path
) -> None:
    fine: dict[str, object] = {"text": "fine", "query": "fine", "s1": "fine", "s2": "fine", "negative": "good"}
    path = write("x.jsonl", f"{json.dumps(row)}\n{json.dumps(fine)}\n")
    counts = load_corpus(corpus, path).counts
    assert (counts.kept, counts.broken) == (1, 1)
    assert reason in str(counts)
    write("alone.jsonl", json.dumps(row))
    with pytest.raises(CorpusError, match=reason):
        load_corpus(corpus, str(tmp_path / "alone.jsonl"))


@pytest.mark.parametrize("column", [[["a"]], [{"en": "a"}], [3]])
def test_so_it_is_in_parquet(column: list[object], tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": column}), tmp_path / "x.parquet")
    with pytest.raises(CorpusError, match=r"text is (a list|a struct|a number), not text"):
        load_corpus("wikipedia", str(tmp_path / "x.parquet"))


def test_a_null_in_parquet_does_not_take_another_column(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", None], "question": ["x", "y"], "label": [1.0, None]})
    pq.write_table(table, tmp_path / "x.parquet")
    (text,) = load_corpus("longdocs", str(tmp_path / "x.parquet")).texts
    assert (text.text, text.label) == ("a", "1")


@pytest.mark.parametrize("name", ["x.txt", "x.csv", "x.jsonl", "x.json"])
@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "marked utf-32-be"]
)
def test_wide_encodings_are_named(encoding: str, name: str, write: Write) -> None:
    mark = "\ufeff" if encoding.startswith("marked") else ""
    encoding = encoding.removeprefix("marked ")
    content = (mark + ("text\nA line\n" if name != "x.json" else '["A line"]')).encode(encoding)
    with pytest.raises(CorpusError, match=encoding[:6].upper()) as caught:
        load_corpus("wikipedia", write(name, content))
    # iconv's name of it gives the text back.
    named = caught.value.next_step.split("-f ")[1].split(" -t")[0]
    assert "A line" in content.decode(named)


@pytest.mark.parametrize(
    "qrels",
    [
        "query-id\tcorpus-id\tscore\nq\td\t2\n",
        "corpus-id\tquery-id\tscore\nd\tq\t2\n",
        "score\tqid\tdocid\tnote\n2\tq\td\tsure\n",
        "q 0 d 2\n",
        "q\td\t2\nq\te\tinf\nq\te\tnan\nq\te\thigh\n",
    ],
)
def test_the_columns_of_judgements_are_those_that_a_header_names(qrels: str, write: Write, tmp_path: Path) -> None:
    write("f/corpus.jsonl", '{"_id": "d", "text": "one"}\n{"_id": "e", "text": "two"}\n')
    write("f/queries.jsonl", '{"_id": "q", "text": "which?"}\n')
    write("f/qrels/test.tsv", qrels)
    judged = load_judged(str(tmp_path / "f"))
    assert [text.label for text in judged.queries.texts] == ["0:2.0"]
    assert judged.queries.counts.broken == 3 * ("inf" in qrels)
    pairs = load_corpus("msmarco-positives", str(tmp_path / "f"))
    assert [(pair.first, pair.second) for pair in pairs.pairs] == [("which?", "one")]
