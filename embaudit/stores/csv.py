"""CSV and TSV, whose vectors are lists as text, or a column for each number."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator

from embaudit.corpora.openers import local_file, reading
from embaudit.errors import CorpusError
from embaudit.stores.nested import Record, table_of_records
from embaudit.stores.place import AskedRows, StorePlace
from embaudit.stores.table import StoreKind, StoreTable

SUFFIXES = (".csv", ".tsv")
SEPARATORS = ",;\t|"


def open_csv(place: StorePlace, asked: AskedRows) -> StoreTable:
    """The rows of a file whose first line names the columns; empty cells are nothing."""
    source = local_file(place.path)
    with reading(source) as stream:
        header = stream.readline().decode("utf-8", errors="replace")
    separator = max(SEPARATORS, key=header.count)

    def records() -> Iterator[Record]:
        # A vector is a cell of many thousands of characters.
        csv.field_size_limit(sys.maxsize)
        with reading(source) as stream:
            lines = (line.decode("utf-8") for line in stream)
            try:
                rows = csv.reader(lines, delimiter=separator, strict=True)
                names = next(rows, [])
                for row in rows:
                    if row:
                        if len(row) != len(names):
                            raise csv.Error(f"{len(row)} cells, where the first line names {len(names)}")
                        yield {name: cell or None for name, cell in zip(names, row, strict=True)}
            except (csv.Error, UnicodeDecodeError) as error:
                raise CorpusError(
                    f"Line {rows.line_num:,} of {place.shown} cannot be read: {error}.",
                    kept="Nothing was measured: rows that are left out would be missing from every count.",
                    next_step="Correct that line, or export the file again.",
                ) from error

    return table_of_records(place.shown, records)


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
