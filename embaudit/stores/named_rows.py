"""Rows of an index that numbers them, by the ids and fields that a file beside it has for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embaudit.stores.columns import IDS
from embaudit.stores.nested import at, column_of, flat, listed
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, Settings, StoreSearch, Where
from embaudit.stores.table import LOOKED_AT, StoreTable, Values

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
