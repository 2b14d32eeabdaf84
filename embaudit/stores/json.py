"""JSON: lines of objects, a list of them, columns, or an answer of a server with rows somewhere in it.

OpenAI's batches: answers with one vector or several, in any order, and the requests that hold their texts. Exports in
several files of one folder, as JSON or CSV. (Parquet's parts are read by its own library.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from embaudit.corpora.openers import ByteSource, local_file, reading
from embaudit.stores.columns import is_vector as may_be_vectors
from embaudit.stores.csv import CSV_SUFFIXES, open_csv
from embaudit.stores.json_rows import ALIKE, FEWEST_ROWS, of_json, parts_of_json, rows_of
from embaudit.stores.nested import Record, at, flat, listed, table_of_records
from embaudit.stores.pieces import in_pieces, is_vector
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError, UsageError

OPENAI_BATCH_ID, START_BYTES = "custom_id", 1_024


def open_answers(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each input of each request; a request that failed is a row without a vector."""

    def rows() -> Iterator[Record]:
        for line in lines_of(local_file(place.path)):
            if line:
                yield from _answers(line)

    return table_of_records(place.shown, rows, vector="vector", id=OPENAI_BATCH_ID)


def open_requests(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each text of each request, for ``--texts``; ids of tokens are no text."""

    def rows() -> Iterator[Record]:
        for line in lines_of(local_file(place.path)):
            sent = at(line, "body.input")
            own = sent if isinstance(sent, list) and not all(isinstance(one, int) for one in sent) else [sent]
            for number, one in enumerate(own):
                yield {OPENAI_BATCH_ID: _named(line, number, len(own)), "text": one if isinstance(one, str) else None}

    return table_of_records(place.shown, rows, id=OPENAI_BATCH_ID)


def _answers(line: Record) -> Iterator[Record]:
    data = at(line, "response.body.data")
    own = [one for one in data if isinstance(one, Mapping)] if isinstance(data, list) else []
    if not own:
        yield {OPENAI_BATCH_ID: line.get(OPENAI_BATCH_ID), "vector": None}
    for place, one in enumerate(sorted(own, key=lambda one: one.get("index", 0))):
        yield {OPENAI_BATCH_ID: _named(line, one.get("index", place), len(own)), "vector": one.get("embedding")}


def _named(line: Record, number: Any, several: int) -> Any:
    return line.get(OPENAI_BATCH_ID) if several == 1 else f"{line.get(OPENAI_BATCH_ID)}[{number}]"


def _starts_with(place: StorePlace, *names: bytes) -> bool:
    if place.suffix not in SUFFIXES or not place.head.startswith(b"{"):
        return False
    with place.path.open("rb") as file:
        start = file.read(START_BYTES)
    return all(b'"%s"' % name in start for name in names)


SUFFIXES = (".jsonl", ".ndjson", ".json")
EXPORT = "Correct that line, or export the file again."
# A list whose last item has a comma behind it, as lines do that were put together by hand.
SPACE = re.compile(r"\s*")
LAST_COMMA = re.compile(rb",\s*\]\s*\Z")


def is_json(place: StorePlace) -> bool:
    return place.suffix in SUFFIXES


def open_json(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a file: a line each, the items of a list, or those in the one object that it is."""
    source = local_file(place.path)
    whole = whole_of(source)
    if whole is None:
        lines, others = _nodes(lambda: lines_of(source))
        records, more = in_pieces(lines, asked.part)
        notes = (*others, *more)
        return table_of_records(place.shown, records, notes=notes)
    rows, notes = rows_of(whole, place.shown, asked.part)

    def own() -> Iterator[Record]:
        return iter(rows)

    records, more = in_pieces(own, asked.part)
    return table_of_records(place.shown, records, rows=None if records is not own else len(rows), notes=(*notes, *more))


def _nodes(records: Callable[[], Iterator[Record]]) -> tuple[Callable[[], Iterator[Record]], tuple[str, ...]]:
    """Of a graph (Neo4j's ``apoc.export.json``), the nodes of labels that have vectors, and what else there is."""
    first = next(records(), {})
    if first.get("type") not in ("node", "relationship") or not {"labels", "label"} & set(first):
        return records, ()
    labels: Counter[tuple[str, ...]] = Counter()
    with_vectors = set()
    for record in records():
        own = _labels(record)
        labels[own] += 1
        if own not in with_vectors and any(is_vector(value) for _, value in flat(record)):
            with_vectors.add(own)
    others = {" ".join(own): count for own, count in labels.items() if own not in with_vectors}
    if not with_vectors or not others:
        return records, ()
    named = ", ".join(f"{count:,} {name}" for name, count in others.items())
    note = f"Rows are the nodes of labels that have vectors; these have none, and are left out: {named}."
    return lambda: (one for one in records() if _labels(one) in with_vectors), (note,)


def _labels(record: Record) -> tuple[str, ...]:
    found = record.get("labels") if record.get("type") == "node" else [record.get("label")]
    return tuple(map(str, found)) if isinstance(found, list) else ()


def whole_of(source: ByteSource) -> Any:
    """The content, if the file is a list, or one object that is no row itself; None for lines of objects."""
    with reading(source) as stream:
        start = stream.read(1 << 16).lstrip()[:1]
    if start == b"[":
        return _parsed(source)
    return _one_object(source) if start == b"{" else None


def _one_object(source: ByteSource) -> Any:
    """The content, if the file is one object that is no row itself; None for lines of objects."""
    with reading(source) as stream:
        first = stream.readline()
        second = stream.readline()
    try:
        content = of_json(first)
    except (ValueError, RecursionError):
        if first.rstrip().endswith(b"}"):
            return None
        return _parsed(source)
    if not isinstance(content, Mapping) or second.strip():
        return None
    # One row has one vector; vectors by id are many.
    vectors = [value for value in content.values() if is_vector(value)]
    if any(isinstance(value, list) and value and isinstance(value[0], list) for value in content.values()):
        # The numbers of rows beside their cells, as pandas writes them.
        vectors = [one for one in vectors if not all(isinstance(number, int) for number in one)]
    are_rows = len(vectors) == len(content) >= FEWEST_ROWS and len({len(one) for one in vectors}) == 1
    return None if vectors and not are_rows else content


def _parsed(source: ByteSource) -> Any:
    with reading(source) as stream:
        content = stream.read()
    try:
        return of_json(LAST_COMMA.sub(b"]", content) if LAST_COMMA.search(content[-START_BYTES:]) else content)
    except (ValueError, RecursionError) as error:
        if (several := _one_after_another(content)) is not None:
            return several
        is_python = content.lstrip()[:2] in (b"{'", b"[{") and b"{'" in content[:START_BYTES]
        raise CorpusError(
            f"{source.shown} is not JSON: {error}.",
            kept="Nothing was measured.",
            next_step="It looks like what Python prints: write it with json.dump(rows, file), not str(rows)."
            if is_python
            else "Write a list of objects, or one object per line in a .jsonl file.",
        ) from error


def _one_after_another(content: bytes) -> list[Any] | None:
    """The values of a file that has several, in lines or not, as jq prints them; None if one of them is none."""
    found = []
    try:
        text, place = content.decode("utf-8"), 0
        while place < len(text):
            one, place = parts_of_json(text, place)
            found.append(one)
            place = SPACE.match(text, place).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return None
    return found


def lines_of(source: ByteSource) -> Iterator[Record]:
    """A row a line; a blank line is a row without anything, so that rows keep their numbers."""
    with reading(source) as stream:
        for number, line in enumerate(stream):
            try:
                row = of_json(line) if line.strip() else {}
            except (ValueError, RecursionError) as error:
                raise _unreadable(number, source, f"a line that is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise _unreadable(number, source, f"a JSON {type(row).__name__} where an object was expected")
            yield row


def _unreadable(number: int, source: ByteSource, why: str) -> CorpusError:
    return CorpusError(
        f"Row {number + 1:,} of {source.shown} cannot be read: {why}.",
        kept="Nothing was measured: rows that are left out would be missing from every count.",
        next_step=EXPORT,
    )


# What such a folder has beside its parts.
BESIDE = ("readme", "license", "_success", "_metadata")


def parts_of(place: StorePlace) -> list[Path]:
    """The files of a folder, if all have one suffix, that of a table."""
    if not place.is_folder:
        return []
    files = [one for one in sorted(place.path.iterdir()) if not one.name.startswith(".")]
    files = [one for one in files if one.is_dir() or not one.name.lower().startswith(BESIDE)]
    suffixes = {StorePlace(str(one)).suffix for one in files}
    is_one = len(files) > 1 and len(suffixes) == 1 and suffixes <= {*CSV_SUFFIXES, *SUFFIXES}
    return files if is_one else []


def open_parts(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of all files, one after another, in the order of their names."""
    files = parts_of(place)
    tables = []
    for file in files:
        own = StorePlace(str(file))
        tables.append((open_csv if own.suffix in CSV_SUFFIXES else open_json)(own, asked))
    first = tables[0]
    vectors = {name for name, column in first.columns.items() if may_be_vectors(column)}
    for table, file in zip(tables, files if vectors else files[1:] + files[:1], strict=True):
        both = table.columns.keys() & first.columns.keys()
        if not vectors & both or len(both) < ALIKE * len(table.columns.keys() | first.columns.keys()):
            raise _differ(place, files, file)
    columns = {name: column for table in reversed(tables) for name, column in table.columns.items()}
    columns = {**{name: columns[name] for name in first.columns}, **columns}

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for table in tables:
            own = [name for name in names if name in table.columns] or [next(iter(table.columns))]
            for batch in table.read(own):
                rows = len(batch[own[0]])
                yield {name: listed(batch[name]) if name in batch else [None] * rows for name in names}

    rows = [table.rows for table in tables if table.rows is not None]
    note = f"The rows are those of {len(files):,} files of the folder, in the order of their names."
    return StoreTable(
        place.shown,
        columns,
        read,
        rows=sum(rows) if len(rows) == len(tables) else None,
        notes=(note, *dict.fromkeys(one for table in tables for one in table.notes)),
    )


def _differ(place: StorePlace, files: Sequence[Path], file: Path) -> UsageError:
    return UsageError(
        f"{place.shown} is a folder of {len(files):,} files that are no parts of one table: {files[0].name} and "
        f"{file.name} have not the same columns, with vectors among them.",
        next_step=f"Name the one with the vectors: embaudit vectors {_with_vectors(files)}; if its texts are in "
        "another, that: --texts FILE",
    )


def _with_vectors(files: Sequence[Path]) -> Path:
    """The first file that has any."""
    for file in files:
        own = StorePlace(str(file))
        try:
            table = (open_csv if own.suffix in CSV_SUFFIXES else open_json)(own, ReadOptions())
        except (CorpusError, UsageError):
            continue
        if any(map(may_be_vectors, table.columns.values())):
            return file
    return files[0]


KINDS = (
    StoreKind(
        name="OpenAI's batch",
        recognises=lambda place: _starts_with(place, b"custom_id", b"response", b"status_code"),
        open=open_answers,
        looks="an answer of OpenAI's batch (.jsonl)",
        tried="the documented form",
    ),
    StoreKind(
        name="requests of OpenAI's batch",
        recognises=lambda place: _starts_with(place, b"custom_id", b"body", b"input"),
        open=open_requests,
        looks="the requests of one, as --texts",
        tried="the documented form",
    ),
    StoreKind(
        name="JSON",
        recognises=is_json,
        open=open_json,
        looks=".jsonl, .json (also .gz)",
        takes_gzip=True,
        tried="documented exports of Qdrant, Pinecone and Chroma",
    ),
    StoreKind(
        name="parts of a table",
        recognises=lambda place: bool(parts_of(place)),
        open=open_parts,
        looks="a folder of files of one form (.jsonl, .json, .csv, .tsv, also .gz), with the same columns",
        tried="parts as exports write them, a file for each document",
    ),
)
