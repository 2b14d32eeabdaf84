"""Damaged rows are counted, damaged files are one clear error."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embaudit.corpora import IngestCounts, load_corpus
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


def test_nothing_kept_gives_the_counts_and_the_first_reason(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"2 rows read: 0 kept.*1 blank, 1 broken.*no text among the fields body_of"):
        load_corpus("wikipedia", write("x.jsonl", '{"body_of": "x"}\n\n'))
    for name in ("x.txt", "x.csv", "x.jsonl", "x.json"):
        with pytest.raises(CorpusError, match="0 rows read"):
            load_corpus("wikipedia", write(name, b""))


@pytest.mark.parametrize("keep", [10, 200])
def test_a_broken_gzip_is_one_error(keep: int, write: Write) -> None:
    packed = gzip.compress(os.urandom(1000).hex().encode(), mtime=0)
    with pytest.raises(CorpusError, match="is damaged") as caught:
        load_corpus("wikipedia", write("x.txt.gz", packed[:keep]))
    assert "gzip -t" in caught.value.next_step


def test_gz_without_gzip_data_is_an_error(write: Write) -> None:
    with pytest.raises(CorpusError, match="is not gzip data"):
        load_corpus("wikipedia", write("x.txt.gz", "plain"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_an_error_with_its_cure(encoding: str, write: Write) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    with pytest.raises(CorpusError, match="UTF-16") as caught:
        load_corpus("wikipedia", write("x.txt", mark + "text\n".encode(encoding)))
    assert "iconv" in caught.value.next_step


def test_broken_parquet_and_json_are_errors(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"cannot be read: .*Parquet"):
        load_corpus("wikipedia", write("x.parquet", b"PAR1 and nothing"))
    with pytest.raises(CorpusError, match="not a JSON list"):
        load_corpus("wikipedia", write("x.json", '["cut'))


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
