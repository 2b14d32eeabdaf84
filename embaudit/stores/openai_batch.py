"""OpenAI's batches: answers with one vector or several, in any order, and the requests that hold their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embaudit.corpora.openers import local_file
from embaudit.stores.json import SUFFIXES, lines_of
from embaudit.stores.nested import Record, at, table_of_records
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import StoreKind, StoreTable

ID, START_BYTES = "custom_id", 1_024


def open_answers(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each input of each request; a request that failed is a row without a vector."""

    def rows() -> Iterator[Record]:
        for line in lines_of(local_file(place.path)):
            if line:
                yield from _answers(line)

    return table_of_records(place.shown, rows, vector="vector", id=ID)


def open_requests(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each text of each request, for ``--texts``; ids of tokens are no text."""

    def rows() -> Iterator[Record]:
        for line in lines_of(local_file(place.path)):
            sent = at(line, "body.input")
            own = sent if isinstance(sent, list) and not all(isinstance(one, int) for one in sent) else [sent]
            for number, one in enumerate(own):
                yield {ID: _named(line, number, len(own)), "text": one if isinstance(one, str) else None}

    return table_of_records(place.shown, rows, id=ID)


def _answers(line: Record) -> Iterator[Record]:
    data = at(line, "response.body.data")
    own = [one for one in data if isinstance(one, Mapping)] if isinstance(data, list) else []
    if not own:
        yield {ID: line.get(ID), "vector": None}
    for place, one in enumerate(sorted(own, key=lambda one: one.get("index", 0))):
        yield {ID: _named(line, one.get("index", place), len(own)), "vector": one.get("embedding")}


def _named(line: Record, number: Any, several: int) -> Any:
    return line.get(ID) if several == 1 else f"{line.get(ID)}[{number}]"


def _starts_with(place: StorePlace, *names: bytes) -> bool:
    if place.suffix not in SUFFIXES or not place.head.startswith(b"{"):
        return False
    with place.path.open("rb") as file:
        start = file.read(START_BYTES)
    return all(b'"%s"' % name in start for name in names)


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
)
