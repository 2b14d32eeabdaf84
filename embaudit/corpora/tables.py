"""Comma- and tab-separated files: rows and column names.

Columns are named by a header (SICK); a file without one is recognised by its first rows (STS Benchmark, SemEval STS, MS
MARCO's collection.tsv).
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from embaudit.corpora.fields import FIRST_FIELDS, QUERY_FIELDS, SECOND_FIELDS, TEXT_FIELDS
from embaudit.corpora.shapes import Kind
from embaudit.corpora.tally import BLANK, UNDECODABLE, Flaw
from embaudit.errors import CorpusError

Record = dict[str, Any]
SAMPLED_ROWS = 50
NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class Layout:
    """The layout of a table without a header: its columns, and an example for error messages."""

    kind: Kind
    columns: tuple[str, ...]
    example: str

    def fits(self, row: list[str]) -> bool:
        if len(row) != len(self.columns):
            return False
        cells = dict(zip(self.columns, row, strict=True))
        score = cells.pop("score", "")
        return (not score.strip() or is_number(score)) and all(cell.strip() for cell in cells.values())


LAYOUTS = (
    Layout("pairs", ("sentence1", "sentence2", "score"), "sentence1,sentence2,score (STS Benchmark)"),
    Layout("pairs", ("score", "sentence1", "sentence2"), "score<TAB>sentence1<TAB>sentence2 (SemEval STS)"),
    Layout("pairs", ("sentence1", "sentence2"), "sentence1<TAB>sentence2"),
    Layout("texts", ("text",), "one text per row"),
    Layout("texts", ("_id", "text"), "id<TAB>text (MS MARCO's collection.tsv)"),
)
HEADERS: dict[Kind, tuple[frozenset[str], str]] = {
    "texts": (frozenset(TEXT_FIELDS), "a header with a column 'text'"),
    "pairs": (
        frozenset((*FIRST_FIELDS, *SECOND_FIELDS, *QUERY_FIELDS)),
        "a header with sentence1, sentence2 and score (or SICK's sentence_A, sentence_B, relatedness_score)",
    ),
}


def is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def separated_rows(stream: IO[bytes], suffix: str) -> Iterator[list[str] | Flaw]:
    """Rows of cells. Tabs separate unless the first line of a .csv file has commas and no tab.

    Tab-separated files have no quoting: SemEval's contain unpaired quotes.
    """
    first = stream.readline()
    lines = itertools.chain([first] if first else [], stream)
    if b"\t" in first or suffix != ".csv":
        return _tab_rows(lines)
    return _comma_rows(lines)


def _tab_rows(lines: Iterator[bytes]) -> Iterator[list[str] | Flaw]:
    for line in lines:
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield UNDECODABLE
            continue
        yield text.split("\t") if text.strip() else BLANK


def _comma_rows(lines: Iterator[bytes]) -> Iterator[list[str] | Flaw]:
    csv.field_size_limit(2**31 - 1)  # the default of 128 KiB is shorter than a long document
    # Undecodable bytes become lone surrogates, so that a bad cell only loses its row.
    # strict: a stray quote must not silently swallow the rows up to the next one.
    reader = csv.reader((line.decode("utf-8", "surrogateescape") for line in lines), strict=True)
    lines_before = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            for _ in range(reader.line_num - lines_before):
                yield Flaw("broken", f"line {lines_before + 1} cannot be parsed: {error}")
        else:
            if any(map(NOT_UTF8.search, row)):
                yield UNDECODABLE
            else:
                yield row or BLANK
        lines_before = reader.line_num


def named_rows(rows: Iterator[list[str] | Flaw], kind: Kind, shown: str) -> Iterator[Record | Flaw]:
    """Add column names to every row, from the header or from the layout that fits most of the first rows.

    Raises:
        CorpusError: if there is no header and no layout fits half of the first rows.
    """
    start = list(itertools.islice(rows, SAMPLED_ROWS))
    readable = [row for row in start if not isinstance(row, Flaw)]
    known, _ = HEADERS[kind]
    if readable and any(cell.strip().lower() in known for cell in readable[0]):
        columns = tuple(cell.strip().lower() for cell in readable[0])
        start.remove(readable[0])
    elif readable:
        columns = _layout_of(readable, kind, shown).columns
    else:
        columns = ()
    for row in itertools.chain(start, rows):
        if isinstance(row, Flaw):
            yield row
        elif len(row) != len(columns):
            yield Flaw("broken", f"a row of {len(row)} columns instead of {len(columns)}")
        else:
            yield dict(zip(columns, row, strict=True))


def _layout_of(rows: list[list[str]], kind: Kind, shown: str) -> Layout:
    layouts = [layout for layout in LAYOUTS if layout.kind == kind]
    best = max(layouts, key=lambda layout: sum(map(layout.fits, rows)))
    if 2 * sum(map(best.fits, rows)) >= len(rows):
        return best
    raise CorpusError(
        f"{shown} does not fit any layout for {kind}: its first row has {len(rows[0])} columns: {str(rows[0])[:120]}.",
        next_step=f"Expected {HEADERS[kind][1]}, or no header: {'; '.join(x.example for x in layouts)}.",
    )
