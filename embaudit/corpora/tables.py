"""Files of separated columns: the separator, rows and column names.

Columns are named by a header (SICK); a file without one is recognised by its first rows (STS Benchmark, SemEval STS, MS
MARCO's collection.tsv). So is the separator: a comma, a tab, or the semicolon of Excel in most of Europe.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from embaudit.corpora.fields import FIRST_FIELDS, QUERY_FIELDS, SECOND_FIELDS, TEXT_FIELDS, number_of
from embaudit.corpora.shapes import Kind
from embaudit.corpora.tally import BLANK, UNDECODABLE, Flaw
from embaudit.words.errors import CorpusError

Record = dict[str, Any]
SAMPLED_ROWS = 50
SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}
# The first line of a file that Excel is told the separator of.
TOLD = re.compile(rb'"?sep=([,;|\t])"?\s*')
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
        # An id is one word: otherwise lines with one comma would be ids and texts.
        named = len(cells.get("_id", "id").split()) == 1
        return named and (not score.strip() or is_number(score)) and all(cell.strip() for cell in cells.values())


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
    return math.isfinite(number_of(cell))


def separated_rows(stream: IO[bytes], suffix: str, kind: Kind, shown: str) -> Iterator[list[str] | Flaw]:
    """Rows of cells.

    Tab-separated files have no quoting: SemEval's contain unpaired quotes.

    Raises:
        CorpusError: if the file has no header, and texts may or may not be one of several columns.
    """
    start = list(itertools.islice(stream, SAMPLED_ROWS))
    if start and (told := TOLD.fullmatch(start[0])):
        separator, start = told[1].decode(), start[1:]
    else:
        separator = separator_of(start, suffix, kind, shown)
    lines = itertools.chain(start, stream)
    return _tab_rows(lines) if separator == "\t" else _quoted_rows(lines, separator)


def separator_of(lines: list[bytes], suffix: str, kind: Kind, shown: str) -> str:
    """What separates the columns of a file, from its first lines.

    By its header, if one separator gives a known name among several. Otherwise by the layout that fits most columns;
    without any, tabs, or the commas of a ``.csv`` file without tabs in its first line.
    """
    read = [line for line in lines if line.strip()]
    usual = "\t" if suffix != ".csv" or (read and b"\t" in read[0]) else ","
    order = [usual, *(one for one in SEPARATORS if one != usual)]
    by_separator = {one: [_cells(line, one) for line in read] for one in order}
    known, _ = HEADERS[kind]

    def named(separator: str) -> int:
        names = by_separator[separator][0] if read else []
        return sum(name.strip().lower() in known for name in names) if len(names) > 1 else 0

    if best := max(map(named, order)):
        return next(one for one in order if named(one) == best)
    if len(read) < 2 or read[0].strip().strip(b'"').decode("utf-8", "replace").lower() in known:
        return usual
    if kind == "pairs":
        # Where commas fit as well as others, they are in the sentences and in decimal numbers.
        by_commas = _columns_fitting(by_separator[","], kind, 0.5)
        others = {
            one: _columns_fitting(by_separator[one], kind, 0.5 if one == usual else 1) for one in order if one != ","
        }
        best = max(others.values())
        return "," if by_commas > best else next(one for one in others if others[one] == best) if best else usual
    # Sentences seldom all have the same number of semicolons. If they do, they are columns, but which is the text?
    even = [one for one in order if len(by_separator[one][0]) > 1 and len({*map(len, by_separator[one])}) == 1]
    if even and even[0] != "\t" and even != [usual]:
        separator = next(one for one in even if one != usual)
        raise CorpusError(
            f"{shown} may be separated by {SEPARATORS[separator]}: each of its first rows has "
            f"{len(by_separator[separator][0])} columns then, but it has no header that says which one is the text.",
            next_step=f"Begin it with a line of column names, such as: id{separator}text; if each line is one text, "
            "with the line: text",
        )
    return usual


def _columns_fitting(rows: list[list[str]], kind: Kind, share: float) -> int:
    """The most columns of a layout that fits at least this share of the rows; 0 if none does."""
    fitting = (layout for layout in LAYOUTS if layout.kind == kind and sum(map(layout.fits, rows)) >= share * len(rows))
    return max((len(layout.columns) for layout in fitting), default=0)


def _cells(line: bytes, separator: str) -> list[str]:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    if separator == "\t":
        return text.split("\t")
    try:
        return next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def _tab_rows(lines: Iterator[bytes]) -> Iterator[list[str] | Flaw]:
    for line in lines:
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield UNDECODABLE
            continue
        yield text.split("\t") if text.strip() else BLANK


def _quoted_rows(lines: Iterator[bytes], separator: str) -> Iterator[list[str] | Flaw]:
    csv.field_size_limit(2**31 - 1)  # the default of 128 KiB is shorter than a long document
    # Undecodable bytes become lone surrogates, so that a bad cell only loses its row.
    # strict: a stray quote must not silently swallow the rows up to the next one.
    reader = csv.reader((line.decode("utf-8", "surrogateescape") for line in lines), delimiter=separator, strict=True)
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
