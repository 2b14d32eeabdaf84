"""Files of separated columns: the separator, rows and column names.

Columns are named by a header (SICK); a file without one is recognised by its first rows (STS Benchmark, SemEval STS, MS
MARCO's collection.tsv). So is the separator: a comma, a tab, or the semicolon of Excel in most of Europe.

Reads tables through ``datasets`` as records: hub files, Parquet and Arrow files, saved data sets.

Rows are streamed: at most one batch is in memory, and nothing is written to the cache of ``datasets``. A truncated file
is an error.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from embaudit.corpora.draw import BLANK, UNDECODABLE, Flaw, Kind
from embaudit.corpora.fields import FIRST_FIELDS, QUERY_FIELDS, SECOND_FIELDS, TEXT_FIELDS, number_of
from embaudit.corpora.hub_reference import builder_of_files
from embaudit.corpora.openers import os_failure
from embaudit.system.hub import datasets_library
from embaudit.words.errors import CorpusError, one_line

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


# Maps a table's schema to the columns to read and their field names.
Choose = Callable[[Any], dict[str, str]]
BATCH_ROWS = 1000
# A corrupt length makes Arrow request too much memory.
DAMAGE = (ValueError, TypeError, EOFError, MemoryError, ImportError, NotImplementedError, zlib.error, gzip.BadGzipFile)
SAVED = (("state.json", "dataset_info.json"), ("dataset_dict.json",))


def file_records(path: Path, shown: str, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of a local Parquet or Arrow file.

    Raises:
        CorpusError: if it is damaged or cannot be read.
    """
    with _local(shown, "Fetch it again."):
        # The library would resolve a relative path inside a data set.
        yield from stream_records(builder_of_files([path.name]), str(path.absolute()), choose)


def stream_records(builder: Any, address: str, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of one file, local or on the hub, read by ``builder``."""
    config = builder.config
    config.data_files = {"rows": [address]}
    for name, value in {"parse_agent_traces": False, "keep_default_na": False}.items():
        if hasattr(config, name):  # of JSON; of CSV, where "NA" and "null" are texts like any other
            setattr(config, name, value)
    try:
        rows = builder.as_streaming_dataset(split="rows")
    except StopIteration:  # an empty JSON file has no first row to get the columns from
        return
    if rows.features is not None and hasattr(config, "columns"):
        config.columns = list(choose(rows.features.arrow_schema))  # fetch only these columns of a Parquet file
        rows = builder.as_streaming_dataset(split="rows")
    yield from table_records(rows.with_format("arrow").iter(BATCH_ROWS), choose)


def is_saved(folder: Path) -> bool:
    """Whether ``save_to_disk`` wrote this folder."""
    return any(all((folder / name).is_file() for name in names) for names in SAVED)


def saved_records(folder: Path, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of a folder written by ``save_to_disk``; from its test split, or the only one.

    Raises:
        CorpusError: if it is damaged, or it is unclear which split to read.
    """
    with _local(str(folder), "Save it again with save_to_disk."):
        saved = datasets_library().load_from_disk(str(folder))
        if isinstance(saved, dict):
            split = "test" if "test" in saved else next(iter(saved)) if len(saved) == 1 else None
            if split is None:
                raise CorpusError(
                    f"{folder} has the splits {', '.join(saved)}.", next_step=f"Name one: {folder / next(iter(saved))}"
                )
            saved = saved[split]
        yield from table_records(saved.with_format("arrow").iter(BATCH_ROWS), choose)


@contextmanager
def report_damage(shown: str, next_step: str) -> Iterator[None]:
    """Turn errors of pyarrow, pandas and ``datasets`` about damaged files into a CorpusError.

    Pyarrow reports some damage as an OSError without errno.
    """
    try:
        yield
    except (*DAMAGE, OSError) as error:
        is_damage = isinstance(error, DAMAGE) or (type(error) is OSError and error.errno is None)
        if not is_damage:
            raise
        raise CorpusError(f"{shown} cannot be read: {one_line(error)}", next_step=next_step) from error


@contextmanager
def _local(shown: str, next_step: str) -> Iterator[None]:
    try:
        with report_damage(shown, next_step):
            yield
    except OSError as error:
        raise os_failure(shown, error) from error


def table_records(tables: Iterable[Any], choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of the Arrow tables of one file."""
    fields: dict[str, str] = {}
    for table in tables:
        fields = fields or choose(table.schema)
        # A later part of a JSON file may lack a column of its first part.
        names = [name for name in fields if name in table.column_names]
        yield from _rows(table.select(names).rename_columns([fields[name] for name in names]))


def _rows(table: Any) -> Iterator[Record | Flaw]:
    """One record per row. Parquet strings should be UTF-8, but nothing enforces it."""
    try:
        yield from table.to_pylist()
    except UnicodeDecodeError:
        for index in range(table.num_rows):
            try:
                yield from table.slice(index, 1).to_pylist()
            except UnicodeDecodeError:
                yield UNDECODABLE
