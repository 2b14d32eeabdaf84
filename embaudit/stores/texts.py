"""Texts in a file beside the vectors: row by row, or by id.

Rows of an index that numbers them, by the ids and fields that a file beside it has for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.corpora.openers import local_file, reading
from embaudit.stores.columns import IDS, TEXTS
from embaudit.stores.kinds import kind_of
from embaudit.stores.nested import at, column_of, flat, listed
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, Settings, StoreSearch, Where
from embaudit.stores.store import LOOKED_AT, StoreColumn, StoreTable, Values
from embaudit.words.errors import CorpusError, UsageError

ID = "id"


def numbering(table: StoreTable) -> np.ndarray | None:
    """(n,) the number of each row, if the table numbers its rows from 0 in some order; None if it has no such ids."""
    if not table.id:
        return None
    ids = np.array([one for batch in table.read([table.id]) for one in listed(batch[table.id])])
    is_numbered = ids.dtype.kind in "iu" and (np.sort(ids) == np.arange(len(ids))).all()
    return ids if is_numbered else None


def with_ids(table: StoreTable, names: Sequence[str]) -> StoreTable:
    """The table with these ids, of the rows 0, 1, 2 …, in place of its own numbers; its search gives them, too."""
    own = table.id or ID

    def read(wanted: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        others = [name for name in wanted if name != own]
        if own not in wanted:
            yield from table.read(others)
            return
        start = 0
        for batch in table.read([*others, own] if table.id else others or [next(iter(table.columns))]):
            numbers = listed(batch[own]) if table.id else range(start, start + len(batch[next(iter(batch))]))
            start += len(numbers)
            yield {**{name: batch[name] for name in others}, own: [names[int(number)] for number in numbers]}

    search = None if table.search is None else _search_by_ids(table.search, names)
    columns = {**table.columns, own: column_of(list(names[:LOOKED_AT]))}
    return replace(table, columns=columns, read=read, id=own, search=search)


def _search_by_ids(open_search: OpenSearch, names: Sequence[str]) -> OpenSearch:
    def opened(columns: SearchedColumns) -> StoreSearch:
        own = open_search(columns)

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            hits = own.find(query, k, settings, where)
            return Hits([_named(one, names) for one in hits.ids], hits.scores)

        return replace(own, find=find)

    return opened


def _named(number: object, names: Sequence[str]) -> object:
    place = int(str(number))
    return names[place] if 0 <= place < len(names) else number


def with_fields(table: StoreTable, records: Sequence[Mapping[str, Any]]) -> StoreTable:
    """The table with the fields of a record for each row, and with their ids where these tell rows apart."""
    numbers = numbering(table)
    some: dict[str, list[Any]] = {}
    for record in records[:LOOKED_AT]:
        for path, value in flat(record):
            some.setdefault(path, []).extend([] if value is None else [value])
    ids = unique_ids(records, some)
    fields = {name: column_of(values) for name, values in some.items() if name not in (table.vector, table.id, ID)}
    inner = table if ids is None else with_ids(table, ids)

    def read(wanted: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        own = [name for name in wanted if name not in fields]
        start = 0
        for batch in table.read([table.id] if numbers is not None else [table.vector]) if not own else inner.read(own):
            size = len(batch[next(iter(batch))])
            places = range(start, start + size) if numbers is None else numbers[start : start + size]
            start += size
            rows = [records[int(place)] for place in places]
            yield {name: batch[name] if name in own else [at(row, name) for row in rows] for name in wanted}

    return replace(inner, columns={**inner.columns, **fields}, read=read)


def unique_ids(records: Sequence[Mapping[str, Any]], names: Mapping[str, Any]) -> list[str] | None:
    """The ids of records, by the column that tells them apart; None if none does."""
    for name in sorted((one for one in names if one.rpartition(".")[2].lower() in IDS), key=lambda one: one.count(".")):
        values = [at(record, name) for record in records]
        if all(isinstance(one, str | int) and not isinstance(one, bool) for one in values):
            ids = [str(one) for one in values]
            if len(set(ids)) == len(ids):
                return ids
    return None


TEXT = "text"
ALSO_TEXTS = (*TEXTS, "query", "question", "input")
FETCH = "Export it again, or fetch it again."


def with_texts(table: StoreTable, file: Path) -> StoreTable:
    """The table with the texts of a file: by id where both have ids that agree, else row by row.

    Raises:
        UsageError: if the file has another number of texts, and no ids.
        CorpusError: if it cannot be read.
    """
    texts, ids = _columns_of(file)
    own = table.id or next((name for name in table.columns if name.rpartition(".")[2].lower() in IDS), "")
    by_id = _by_id(texts, ids, table, own) if ids and own else None
    if by_id is None:
        lines, rows = sum(1 for _ in _read(texts, "text", file)), _rows(table)
        if lines != rows:
            raise UsageError(
                f"{table.shown} has {rows:,} vectors, and {file} has {lines:,} texts.",
                kept="Nothing was compared: which text belongs to which vector is unknown.",
                next_step="Write one text a line for every vector; in .jsonl a text may hold newlines.",
            )

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        others = [name for name in names if name != TEXT]
        if TEXT not in names:
            yield from table.read(others)
            return
        lines = None if by_id is not None else _read(texts, "text", file)
        first = others or [next(iter(table.columns))]
        for batch in table.read(list(dict.fromkeys([*first, *([own] if by_id is not None else [])]))):
            if by_id is not None:
                found = [by_id.get(str(one)) for one in listed(batch[own])]
            else:
                assert lines is not None
                found = list(itertools.islice(lines, len(batch[first[0]])))
            yield {**{name: batch[name] for name in others}, TEXT: found}

    columns = {**table.columns, TEXT: StoreColumn("text", "text", ())}
    known = replace(table, columns=columns, read=read, text=TEXT)
    names = [] if by_id is not None or not ids else ids_by_row(file)
    # What numbers its rows is known by the ids that people have for them.
    is_numbered = bool(names) and len(set(names)) == len(names) and (not own or numbering(table) is not None)
    return with_ids(known, names) if is_numbered else known


def ids_by_row(file: Path) -> list[str]:
    """The ids that a file of texts has, in the order of its rows; none if it has no column of ids."""
    table, ids = _columns_of(file)
    if table is None or not ids:
        return []
    return [str(one) for batch in table.read([ids]) for one in listed(batch[ids])]


def _rows(table: StoreTable) -> int:
    if table.rows is not None:
        return table.rows
    name = table.vector or next(iter(table.columns))
    return sum(len(batch[name]) for batch in table.read([name]))


def _columns_of(file: Path) -> tuple[StoreTable | None, str]:
    """The table that a file of texts is, if it is more than lines, and its column of ids."""
    place = StorePlace(str(file))
    if not file.is_file():
        raise CorpusError(f"There is no file {file}.", next_step="Check the path.")
    kind = kind_of(place)
    if kind is None:
        return None, ""
    table = kind.open(place, ReadOptions())
    ids = [name for name in table.columns if name.rpartition(".")[2].strip().lower() in IDS]
    return table, min(ids, key=lambda name: name.count("."), default="")


def _text_column(table: StoreTable, file: Path) -> str:
    named: dict[str, str] = {}
    for name in table.columns:
        named.setdefault(name.rpartition(".")[2].strip().lower(), name)
    found = next((named[name] for name in ALSO_TEXTS if name in named), None)
    only = [name for name, column in table.columns.items() if column.what == "text"]
    found = found or (only[0] if len(only) == 1 else None)
    if found is None:
        raise UsageError(
            f"{file} has no column of texts.", next_step="Call it 'text', beside an 'id' if rows have ids."
        )
    return found


def _read(table: StoreTable | None, what: str, file: Path) -> Iterator[str | None]:
    if table is None:
        yield from _lines(file)
        return
    column = _text_column(table, file)
    for batch in table.read([column]):
        yield from (one if isinstance(one, str) else None for one in listed(batch[column]))


def _by_id(texts: StoreTable | None, ids: str, table: StoreTable, own: str) -> dict[str, str | None] | None:
    """Texts by id; None if the table's ids are not among them."""
    if texts is None:
        return None
    some = [str(one) for one in table.columns[own].some]
    column = _text_column(texts, Path(texts.shown))
    found: dict[str, str | None] = {}
    for batch in texts.read([ids, column]):
        rows: Iterator[tuple[Any, Any]] = zip(listed(batch[ids]), listed(batch[column]), strict=True)
        # An id whose text is none is known all the same.
        found |= {str(name): text if isinstance(text, str) else None for name, text in rows}
    return found if some and all(one in found for one in some) else None


def _lines(path: Path) -> Iterator[str]:
    source = local_file(path)
    with reading(source) as stream:
        for number, line in enumerate(stream):
            try:
                yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                raise CorpusError(f"Line {number + 1:,} of {source.shown} is not UTF-8.", next_step=FETCH) from error
