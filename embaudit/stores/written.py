"""Values as MongoDB's tools write them, and lists that hold nothing but one vector."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from embaudit.stores.byte_numbers import read_bytes
from embaudit.stores.nested import column_of, listed
from embaudit.stores.table import StoreTable, Values

NUMBERS = ("$numberDouble", "$numberInt", "$numberLong", "$numberDecimal")
# BSON's vectors: two bytes before the numbers say what they are, and how many bits at the end are none.
VECTOR, KINDS = "09", {0x27: "float32", 0x03: "int8", 0x10: "bits"}
DEEPEST = 3


def of_json(text: str | bytes) -> Any:
    """A JSON value, with MongoDB's extended types as the values that they are."""
    is_extended = (b'"$' if isinstance(text, bytes) else '"$') in text  # type: ignore[operator]
    return json.loads(text, object_hook=_plain) if is_extended else json.loads(text)


def _plain(value: dict[str, Any]) -> Any:
    """What it stands for, if it is one of the extended types; itself if it only looks like one."""
    if len(value) != 1:
        return value
    ((name, own),) = value.items()
    try:
        if name in NUMBERS:
            return float(own) if name in ("$numberDouble", "$numberDecimal") else int(own)
        return own if name == "$oid" else _bytes(own) if name == "$binary" else value
    except (ValueError, TypeError, AttributeError):
        return value


def _bytes(own: Mapping[str, Any]) -> Any:
    """Bytes, or the numbers of a vector."""
    raw = base64.b64decode(own["base64"], validate=True) if "base64" in own else b""
    kind = KINDS.get(raw[0]) if str(own.get("subType", "")).zfill(2) == VECTOR and len(raw) > 2 else None
    return raw if kind is None else read_bytes([raw[2:]], kind)[0].tolist()


def with_single(table: StoreTable) -> StoreTable:
    """The table with the one vector that each value of a column holds: ``[[0.1, …]]``, as some servers answer."""
    single = {name for name, column in table.columns.items() if column.some and all(map(_is_single, column.some))}
    if not single:
        return table
    columns = {
        name: column_of([_only(one) for one in column.some]) if name in single else column
        for name, column in table.columns.items()
    }

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for batch in table.read(names):
            yield {
                name: [_only(one) for one in listed(batch[name])] if name in single else batch[name] for name in names
            }

    return replace(table, columns=columns, read=read)


def _is_single(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) and _only(value) is not value


def _only(value: Any) -> Any:
    """The list of numbers that is alone in a list; the value itself if there is something else in it."""
    own = value
    for _ in range(DEEPEST):
        if not (isinstance(own, list) and len(own) == 1 and isinstance(own[0], list)):
            break
        own = own[0]
    return own if isinstance(own, list) and own and isinstance(own[0], int | float) else value
