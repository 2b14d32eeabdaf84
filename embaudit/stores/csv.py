"""CSV and TSV, whose vectors are lists as text, or a column for each number.

Vectors of words, a line each, as word2vec, fastText (.vec) and GloVe write them.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from embaudit.corpora.openers import local_file, reading
from embaudit.stores.nested import Record, table_of_records
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import StoreKind, StoreTable
from embaudit.stores.written import text_form
from embaudit.words.errors import CorpusError

CSV_SUFFIXES = (".csv", ".tsv")
SEPARATORS, TAB = ",;|", "\t"
# Lines of a file by tabs that are looked at for quotes, and what COPY writes for nothing.
PLAIN_LINES, NULL = 200_000, b"\\N"
QUOTED = re.compile(rb'"(?:[^"]|"")*"')
ESCAPED, ESCAPES = re.compile(r"\\(.)"), {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
# What is in quotes or brackets: a vector has commas of its own.
INSIDE = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')
FRACTION = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")


def open_csv(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a file; empty cells are nothing. If the first line names no columns, these have numbers."""
    source = local_file(place.path)
    csv.field_size_limit(sys.maxsize)
    with reading(source) as stream:
        header = stream.readline().decode("utf-8", errors="replace")
    separator = TAB if TAB in header else max(SEPARATORS, key=INSIDE.sub("", header).count)
    first = next(csv.reader([header], delimiter=separator), [])
    is_plain = separator == TAB and _is_plain(place.path, len(first))
    own = [f"column {number}" for number in range(1, len(first) + 1)] if any(map(_is_value, first)) else None

    def records() -> Iterator[Record]:
        with reading(source) as stream:
            lines = (line.decode("utf-8") for line in stream)
            try:
                rows: Any = csv.reader(lines, delimiter=separator, strict=True) if not is_plain else _Plain(lines)
                names = own or next(rows, [])
                for row in rows:
                    if row:
                        if len(row) != len(names):
                            raise csv.Error(f"{len(row)} cells, where the first line has {len(names)}")
                        yield {name: cell or None for name, cell in zip(names, row, strict=True)}
            except (csv.Error, UnicodeDecodeError) as error:
                raise CorpusError(
                    f"Line {rows.line_num:,} of {place.shown} cannot be read: {error}.",
                    kept="Nothing was measured: rows that are left out would be missing from every count.",
                    next_step="Correct that line, or export the file again.",
                ) from error

    return table_of_records(place.shown, records)


def _is_plain(path: Path, width: int) -> bool:
    """Whether cells by tabs stand as they are, in no quotes: as PostgreSQL's COPY, mysql and projectors write them.

    Then each line has all cells, and one of them is ``\\N`` or begins with a quote and does not end with it.
    """
    shows = False
    with reading(local_file(path)) as stream:
        for line in islice(stream, PLAIN_LINES):
            cells = line.rstrip(b"\r\n").split(b"\t")
            if len(cells) != width:
                return False
            shows = shows or any(one == NULL or (one[:1] == b'"' and not QUOTED.fullmatch(one)) for one in cells)
    return shows


class _Plain:
    """The rows of such a file; where nulls are written as COPY does, so are tabs and the ends of lines."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.line_num = 0

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        line = next(self._lines)
        self.line_num += 1
        return [_unescaped(cell) for cell in line.rstrip("\r\n").split(TAB)]


def _unescaped(cell: str) -> str:
    if cell == NULL.decode():
        return ""
    return ESCAPED.sub(lambda found: ESCAPES.get(found[1], found[1]), cell) if "\\" in cell else cell


def _is_value(cell: str) -> bool:
    """Whether it is a vector or a fraction: whole numbers may name columns."""
    return bool(FRACTION.fullmatch(cell.strip())) or (bool(cell.strip()) and bool(text_form([cell])))


WORD_VECTORS_SUFFIXES = (".vec", ".txt", ".w2v", ".word2vec", ".glove")
FEWEST, START_BYTES = 8, 1 << 16


def _shape(place: StorePlace) -> tuple[int, bool] | None:
    """The dimension, and whether a first line gives it; None if the lines are none of words and numbers."""
    if place.suffix not in WORD_VECTORS_SUFFIXES:
        return None
    with reading(local_file(place.path)) as stream:
        lines = [
            line.decode("utf-8", errors="replace").split() for line in stream.read(START_BYTES).split(b"\n", 3)[:2]
        ]
    if len(lines) < 2:
        return None
    first, second = lines
    if len(first) == 2 and all(one.isdecimal() for one in first):
        return (int(first[1]), True) if len(second) > FEWEST and _numbers(second, int(first[1])) else None
    dimension = len(second) - 1
    is_one = dimension >= FEWEST and len(first) == len(second) and not _is_number(first[0])
    return (dimension, False) if is_one and _numbers(first, dimension) and _numbers(second, dimension) else None


def _numbers(parts: list[str], dimension: int) -> list[float] | None:
    try:
        return [float(one) for one in parts[-dimension:]] if len(parts) > dimension else None
    except ValueError:
        return None


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(".", "", 1).lstrip("+-").isdecimal()


def open_words(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each word; a word may have spaces in it."""
    dimension, has_header = _shape(place) or (0, False)

    def records() -> Iterator[Record]:
        with reading(local_file(place.path)) as stream:
            for number, line in enumerate(stream, 1):
                parts = line.decode("utf-8", errors="replace").rstrip().split(" ")
                if (has_header and number == 1) or parts == [""]:
                    continue
                vector = _numbers(parts, dimension)
                if vector is None:
                    raise CorpusError(
                        f"Line {number:,} of {place.shown} cannot be read: it is no word with {dimension:,} numbers.",
                        kept="Nothing was measured.",
                        next_step="Export the file again.",
                    )
                yield {"text": " ".join(parts[:-dimension]), "vector": vector}

    return table_of_records(place.shown, records, vector="vector", text="text")


KINDS = (
    StoreKind(
        name="CSV",
        recognises=lambda place: place.suffix in CSV_SUFFIXES,
        open=open_csv,
        looks=".csv, .tsv (also .gz)",
        takes_gzip=True,
        tried="pandas' files",
    ),
    StoreKind(
        name="word vectors",
        recognises=lambda place: _shape(place) is not None,
        open=open_words,
        looks="word vectors as text (.vec, .txt)",
        takes_gzip=True,
        tried="the documented forms of word2vec and GloVe",
    ),
)
