"""Rows that are broken, and layouts that are nearly those that are read: counted, dropped, or refused by name."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embaudit.corpora.draw import IngestCounts, TextPair
from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]


def counts_of(name: str, path: str) -> IngestCounts:
    return load_corpus(name, path).counts


def test_every_kind_of_row_is_counted(write: Write) -> None:
    path = write("x.txt", b"one\n one \n\n   \nwith\0nul\nbad \xff byte\ntwo")
    assert counts_of("wikipedia", path) == IngestCounts(read=7, kept=2, duplicate=1, blank=2, broken=1, undecodable=1)


def test_a_last_line_cut_inside_a_character_is_undecodable(write: Write) -> None:
    path = write("x.txt", "whole line\ncut é".encode()[:-1])
    assert counts_of("wikipedia", path) == IngestCounts(2, 1, 0, 0, 0, 1)


@pytest.mark.parametrize(
    "row",
    [
        '{"text": "cut',
        '{"body_of": "no text field"}',
        '{"text": null}',
        '{"text": 5}',
        '["a", "list"]',
        '{"text": "half \\ud800 a pair"}',
        "[" * 100_000,
    ],
)
def test_broken_json_rows_are_counted(row: str, write: Write) -> None:
    path = write("x.jsonl", f'{{"text": "fine"}}\n{row}\n')
    assert counts_of("wikipedia", path) == IngestCounts(2, 1, 0, 0, 1, 0)


def test_an_unpaired_quote_costs_the_lines_it_swallows_and_no_more(write: Write) -> None:
    path = write(
        "x.csv",
        'text,label\nfine,a\n"open,b\nswallowed,c\nthe end"x,d\nfine too,e\n"never closed,f\nlast,g\n',
    )
    corpus = load_corpus("longdocs", path)
    assert [text.text for text in corpus.texts] == ["fine", "fine too"]
    assert corpus.counts == IngestCounts(7, 2, 0, 0, 5, 0)


def test_undecodable_bytes_cost_one_row_of_a_table(write: Write) -> None:
    assert counts_of("longdocs", write("x.csv", b"text,label\na,1\nb\xff,2\nc,3\n")).undecodable == 1
    assert counts_of("sts", write("x.tsv", b"1\ta\tb\n2\tc\xff\td\n")).undecodable == 1


def test_undecodable_parquet_strings_are_counted(tmp_path: Path) -> None:
    strings = pa.array([b"fine", b"bad \xff", b"fine too"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": strings}), tmp_path / "x.parquet")
    assert counts_of("wikipedia", str(tmp_path / "x.parquet")) == IngestCounts(3, 2, 0, 0, 0, 1)


def test_a_very_long_cell_is_read(write: Write) -> None:
    corpus = load_corpus("longdocs", write("x.csv", f"text,label\n{'word ' * 60_000},a\n"))
    assert len(corpus.texts[0].text) == 5 * 60_000 - 1


PACKED = gzip.compress(random.Random(0).randbytes(1000).hex().encode(), mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "said", "cure"),
    [
        (
            "x.jsonl",
            '{"body_of": "x"}\n\n',
            "2 rows read: 0 kept.*1 blank, 1 broken.*no text among the fields body_of",
            "",
        ),
        *((name, b"", "0 rows read", "") for name in ("x.txt", "x.csv", "x.jsonl", "x.json")),
        *(("x.txt.gz", PACKED[:keep], "is damaged", "gzip -t") for keep in (10, 200)),
        ("x.txt.gz", "plain", "is not gzip data", ""),
        ("x.parquet", b"PAR1 and nothing", "cannot be read: .*Parquet", ""),
        ("x.json", '["cut', "not a JSON list", ""),
        ("x.csv", "Well then, he said\nNo\nShe left, at last\nThe end, they say\n", "does not fit any layout", ""),
        ("x.zip", "PK", "x.zip", ".parquet"),
    ],
)
def test_a_file_that_holds_no_texts_is_one_error(
    name: str, content: bytes | str, said: str, cure: str, write: Write
) -> None:
    with pytest.raises(CorpusError, match=said) as caught:
        load_corpus("wikipedia", write(name, content))
    assert cure in caught.value.next_step


def test_parquet_without_a_known_column_names_what_it_has(tmp_path: Path) -> None:
    pq.write_table(pa.table({"abstract_de": ["x"]}), tmp_path / "x.parquet")
    with pytest.raises(CorpusError, match="abstract_de"):
        load_corpus("wikipedia", str(tmp_path / "x.parquet"))


def test_a_folder_where_a_file_was_expected_names_a_file(write: Write, tmp_path: Path) -> None:
    file = write("folder/a.txt", "text")
    with pytest.raises(CorpusError, match="is a folder") as caught:
        load_corpus("wikipedia", str(tmp_path / "folder"))
    assert file in caught.value.next_step


@pytest.mark.parametrize("name", ["x.txt", "x.parquet"])
def test_permission_denied_is_an_error(name: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(name, "text")

    # Tests may run as root, whom no mode bits stop.
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("datasets.utils.file_utils.open", refuse, raising=False)
    with pytest.raises(CorpusError, match="permission denied") as caught:
        load_corpus("wikipedia", path)
    assert f"chmod u+r {path}" in caught.value.next_step


# ---- layouts ----


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
    "encoding",
    ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "marked utf-16-be", "marked utf-32-be"],
)
def test_wide_encodings_are_named(encoding: str, name: str, write: Write) -> None:
    mark = "\ufeff" if encoding.startswith("marked") else ""
    encoding = encoding.removeprefix("marked ")
    content = (mark + ("text\nA line\n" if name != "x.json" else '["A line"]')).encode(encoding)
    with pytest.raises(CorpusError, match=encoding[:6].upper()) as caught:
        load_corpus("wikipedia", write(name, content))
    assert "iconv" in caught.value.next_step
    # Its name of it gives the text back.
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
