"""Columns out of rows that are nested: dictionaries in dictionaries, structs, and JSON written as text."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from embaudit.stores.store import BATCH_ROWS, LOOKED_AT, StoreColumn, StoreTable, Values, What

Record = Mapping[str, Any]
KEPT_VALUES = 20


def flat(record: Record, path: str = "") -> Iterator[tuple[str, Any]]:
    """What a record holds, by dotted path; a list is a value."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def at(record: Any, path: str) -> Any:
    """The value at a dotted path; None if there is none. A name may hold dots itself."""
    if not isinstance(record, Mapping):
        return None
    if path in record:
        return record[path]
    for end in (place for place, letter in enumerate(path) if letter == "."):
        if path[:end] in record and (found := at(record[path[:end]], path[end + 1 :])) is not None:
            return found
    return None


def table_of_records(
    shown: str, records: Callable[[], Iterator[Record]], looked_at: int = LOOKED_AT, **declared: Any
) -> StoreTable:
    """A table of rows that are dictionaries, nested or not.

    Args:
        records: reads them from the start.
        declared: what else the table says of itself.
    """
    some: dict[str, list[Any]] = {}
    for record in islice(records(), looked_at):
        for name, value in flat(record):
            own = some.setdefault(name, [])
            if value is not None and len(own) < KEPT_VALUES:
                own.append(value)

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for rows in batched(records(), BATCH_ROWS):
            yield {name: [at(row, name) for row in rows] for name in names}

    return StoreTable(shown, {name: column_of(own) for name, own in some.items()}, read, **declared)


def batched(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    own = iter(rows)
    while part := list(islice(own, size)):
        yield part


def column_of(some: Sequence[Any]) -> StoreColumn:
    """What values are, by themselves."""
    first: Any = next(iter(some), None)
    kept = tuple(some[:KEPT_VALUES])
    if hasattr(first, "__len__") and not isinstance(first, str | bytes | bytearray | Mapping):
        numbers = [one for one in first if one is not None]
        what: What = "other"
        if numbers and all(_is_fraction(one) or _is_whole(one) for one in numbers):
            what = "whole numbers" if all(map(_is_whole, numbers)) else "vector"
        return StoreColumn(f"list of {'numbers' if what != 'other' else 'something else'}", what, kept)
    if isinstance(first, str):
        return StoreColumn("text", "text", kept)
    if isinstance(first, bytes | bytearray):
        return StoreColumn("bytes", "bytes", kept)
    return StoreColumn("nothing" if first is None else type(first).__name__, "other", kept)


def _is_whole(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or _kind(value) in ("i", "u")


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) or _kind(value) == "f"


def _kind(value: Any) -> str:
    return getattr(getattr(value, "dtype", None), "kind", "")


def with_json(table: StoreTable) -> StoreTable:
    """The table with what its columns of JSON texts hold, by dotted path: ``metadata.title``."""
    inner: dict[str, tuple[str, str]] = {}
    columns = dict(table.columns)
    for name, column in table.columns.items():
        if name in (table.vector, table.text, table.id) or not column.some:
            continue
        objects = [json_object(one) for one in column.some]
        if any(one is None for one in objects):
            continue
        some: dict[str, list[Any]] = {}
        for one in objects:
            for path, value in flat(one or {}):
                some.setdefault(path, []).extend([value] if value is not None else [])
        for path, own in some.items():
            inner[f"{name}.{path}"] = (name, path)
            columns[f"{name}.{path}"] = column_of(own)
        del columns[name]
    if not inner:
        return table

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        opened_ones = {inner[name][0] for name in names if name in inner}
        whole = list(dict.fromkeys(inner[name][0] if name in inner else name for name in names))
        for batch in table.read(whole):
            opened = {name: [json_object(one) for one in listed(batch[name])] for name in opened_ones}
            yield {
                name: [at(row, inner[name][1]) for row in opened[inner[name][0]]] if name in inner else batch[name]
                for name in names
            }

    return replace(table, columns=columns, read=read)


def json_object(value: Any) -> dict[str, Any] | None:
    """The object that is written as JSON, or as Python prints it; None if it is something else."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str | bytes) or value.strip()[:1] not in ("{", b"{"):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = _printed_object(value)
    return found if isinstance(found, dict) else None


def _printed_object(value: str | bytes) -> Any:
    """A dictionary of plain values as ``str`` gives it, which is how CSV gets metadata; nothing is run."""
    try:
        return ast.literal_eval(value.strip()) if isinstance(value, str) else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def is_prose(texts: Sequence[str]) -> bool:
    """Whether strings are texts, and no ids or file names: most have white space in them."""
    return sum(len(text.split()) > 1 for text in texts) > len(texts) / 2


def listed(values: Values) -> Sequence[Any]:
    """The values of a column as Python's own."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values
