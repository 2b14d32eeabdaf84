"""CSV and TSV, whose vectors are lists as text, or a column for each number."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator

from embaudit.corpora.openers import local_file, reading
from embaudit.stores.nested import Record, table_of_records
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import StoreKind, StoreTable
from embaudit.stores.text_numbers import text_form
from embaudit.words.errors import CorpusError

SUFFIXES = (".csv", ".tsv")
SEPARATORS, TAB = ",;|", "\t"
INSIDE = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')
FRACTION = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")


def open_csv(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a file; empty cells are nothing. If the first line names no columns, these have numbers."""
    source = local_file(place.path)
    csv.field_size_limit(sys.maxsize)
    with reading(source) as stream:
        header = stream.readline().decode("utf-8", errors="replace")
    separator = TAB if TAB in header else max(SEPARATORS, key=_outside_of_quotes(header).count)
    first = next(csv.reader([header], delimiter=separator), [])
    own = [f"column {number}" for number in range(1, len(first) + 1)] if any(map(_is_value, first)) else None

    def records() -> Iterator[Record]:
        with reading(source) as stream:
            lines = (line.decode("utf-8") for line in stream)
            try:
                rows = csv.reader(lines, delimiter=separator, strict=True)
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


def _outside_of_quotes(line: str) -> str:
    """Without what is in quotes or brackets: a vector has commas of its own."""
    return INSIDE.sub("", line)


def _is_value(cell: str) -> bool:
    """Whether it is a vector or a fraction: whole numbers may name columns."""
    return bool(FRACTION.fullmatch(cell.strip())) or (bool(cell.strip()) and bool(text_form([cell])))


KINDS = (
    StoreKind(
        name="CSV",
        recognises=lambda place: place.suffix in SUFFIXES,
        open=open_csv,
        looks=".csv, .tsv (also .gz)",
        takes_gzip=True,
        tried="pandas' files",
    ),
)
