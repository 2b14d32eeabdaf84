"""What is put into Elasticsearch and OpenSearch (``_bulk``): a line that says what to do, and one with the document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from embaudit.corpora.openers import local_file, reading
from embaudit.stores.json import SUFFIXES, lines_of
from embaudit.stores.nested import Record, table_of_records
from embaudit.stores.place import GZIP, ReadOptions, StorePlace
from embaudit.stores.table import StoreKind, StoreTable
from embaudit.words.errors import CorpusError

ACTIONS = ("index", "create", "update", "delete")
TOLD = {"_index", "_id", "_type", "routing", "_routing", "pipeline", "require_alias", "retry_on_conflict", "version"}
ID = "_id"
LONGEST = 4_096


def open_bulk(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each document; what is deleted has none."""

    def rows() -> Iterator[Record]:
        action: Record | None = None
        for number, line in enumerate(lines_of(local_file(place.path)), 1):
            if not line:
                continue
            if action is None:
                if not is_action(line):
                    raise CorpusError(
                        f"Line {number:,} of {place.shown} cannot be read: it should say what to do with the next one, "
                        "as the first line does.",
                        kept="Nothing was measured.",
                        next_step="Correct that line, or export the file again.",
                    )
                action = None if "delete" in line else line
                continue
            ((what, told),) = action.items()
            document: Any = line.get("doc", line.get("upsert", {})) if what == "update" else line
            yield {ID: (told or {}).get(ID), **document}
            action = None

    return table_of_records(place.shown, rows, id=ID)


def is_action(line: Any) -> bool:
    """Whether a line says what to do with the next one."""
    if not isinstance(line, dict) or len(line) != 1:
        return False
    ((what, told),) = line.items()
    return what in ACTIONS and (told is None or (isinstance(told, dict) and set(told) <= TOLD))


def is_bulk(place: StorePlace) -> bool:
    if place.suffix not in SUFFIXES or not place.head.startswith((b"{", GZIP)):
        return False
    with reading(local_file(place.path)) as stream:
        first, second = stream.readline(LONGEST), stream.read(1)
    try:
        return second == b"{" and is_action(json.loads(first))
    except ValueError:
        return False


KINDS = (
    StoreKind(
        name="Elasticsearch's bulk",
        recognises=is_bulk,
        open=open_bulk,
        looks="lines for Elasticsearch's or OpenSearch's _bulk (.ndjson)",
        takes_gzip=True,
        tried="the documented form",
    ),
)
