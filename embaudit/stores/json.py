"""JSON: lines of objects, a list of them, columns, or an answer of a server with rows somewhere in it.

OpenAI's batches: answers with one vector or several, in any order, and the requests that hold their texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embaudit.corpora.openers import ByteSource, local_file, reading
from embaudit.stores.nested import Record, at, table_of_records
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import StoreKind, StoreTable
from embaudit.stores.written import BASE64, of_base64, of_json, read_bytes
from embaudit.words.errors import CorpusError

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
# Deeper, nobody puts rows.
DEEPEST = 5
# Of an object of nothing but vectors: fewer are those of one row.
FEWEST_ROWS = 3


def is_json(place: StorePlace) -> bool:
    return place.suffix in SUFFIXES


def open_json(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a file: a line each, the items of a list, or those in the one object that it is."""
    source = local_file(place.path)
    whole = whole_of(source)
    if whole is None:
        return table_of_records(place.shown, lambda: lines_of(source))
    rows = rows_of(whole)
    return table_of_records(place.shown, lambda: iter(rows), rows=len(rows))


def whole_of(source: ByteSource) -> Any:
    """The content, if the file is a list, or one object that is no row itself; None for lines of objects."""
    with reading(source) as stream:
        start = stream.read(1 << 16).lstrip()[:1]
    if start == b"[":
        return _parsed(source)
    return _one_object(source) if start == b"{" else None


def rows_of(content: Any) -> list[Record]:
    """The rows that a JSON value holds, by its form: a list, columns of one length, rows by id; else in what it holds.

    The largest is meant: an answer of a server has its rows beside a word or two.
    """
    if isinstance(content, list):
        return [
            row if isinstance(row, Mapping) else {"text": row} if isinstance(row, str) else {"vector": row}
            for row in content
        ]
    found = list(_candidates(content, 0))
    return max(found, key=len, default=[content])


def _candidates(content: Any, depth: int) -> Iterator[list[Record]]:
    if not isinstance(content, Mapping) or depth > DEEPEST:
        return
    if (whole := _beside_a_matrix(content)) is not None:
        yield whole
        return
    columns = {name: value for name, value in content.items() if isinstance(value, list)}
    if any(_are_vectors(value) for value in columns.values()):
        rows = next(len(value) for value in columns.values() if _are_vectors(value))
        same = {name: value for name, value in columns.items() if len(value) == rows}
        yield [dict(zip(same, row, strict=True)) for row in zip(*same.values(), strict=True)]
        return
    if content and all(is_vector(value) for value in content.values()):
        yield [{"id": name, "vector": value} for name, value in content.items()]
        return
    if (
        len(content) > 1
        and all(isinstance(value, Mapping) for value in content.values())
        and all(any(is_vector(inner) for inner in value.values()) for value in content.values())
    ):
        yield [{"id": name, **value} for name, value in content.items()]
        return
    for value in content.values():
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            yield list(value)
        else:
            yield from _candidates(value, depth + 1)


def _beside_a_matrix(content: Mapping[str, Any]) -> list[Record] | None:
    """Rows beside which their vectors stand in one matrix, float32 in base64, as in nano-vectordb (LightRAG)."""
    rows = next(
        (one for one in content.values() if isinstance(one, list) and one and isinstance(one[0], Mapping)), None
    )
    for name, value in content.items():
        if rows is None or not isinstance(value, str) or not BASE64.fullmatch(value):
            continue
        raw = of_base64(value) or b""
        if raw and not len(raw) % (4 * len(rows)):
            vectors = read_bytes([raw], "float32").reshape(len(rows), -1)
            return [{**row, name: vector.tolist()} for row, vector in zip(rows, vectors, strict=True)]
    return None


def is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in value[:8])
    )


def _are_vectors(value: list[Any]) -> bool:
    present = [one for one in value if one is not None]
    return bool(present) and all(map(is_vector, present[:8]))


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
    are_rows = len(vectors) == len(content) >= FEWEST_ROWS and len({len(one) for one in vectors}) == 1
    return None if vectors and not are_rows else content


def _parsed(source: ByteSource) -> Any:
    with reading(source) as stream:
        content = stream.read()
    try:
        return of_json(content)
    except (ValueError, RecursionError) as error:
        raise CorpusError(
            f"{source.shown} is not JSON: {error}.",
            kept="Nothing was measured.",
            next_step="Write a list of objects, or one object per line in a .jsonl file.",
        ) from error


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
)
