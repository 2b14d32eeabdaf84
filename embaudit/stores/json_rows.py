"""The rows of a JSON value: a list, columns, rows by id, cells under names, or answers in pages.

MongoDB, DynamoDB, Firestore and Vespa write values with their types, which are made plain first.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from embaudit.stores.nested import Record, flat, is_prose
from embaudit.stores.pieces import LOOKED_AT, are_vectors, is_column, is_vector, pieces_path, vector_paths
from embaudit.stores.place import part_meant
from embaudit.stores.written import BASE64, of_base64, read_bytes
from embaudit.words.sentences import first_of

NUMBERS = ("$numberDouble", "$numberInt", "$numberLong", "$numberDecimal")
# BSON's vectors: two bytes before the numbers say what they are, and how many bits at the end are none.
VECTOR, KINDS = "09", {0x27: "float32", 0x03: "int8", 0x10: "bits"}
# What shows that values are written with their types: MongoDB's, DynamoDB's, Firestore's; Vespa's cells of a tensor.
TYPED = re.compile(r'"\$|"[SN]"\s*:|Value"\s*:|"(?:cells|blocks)"\s*:')
TYPED_BYTES = re.compile(TYPED.pattern.encode())
# What a tensor has: its type, and its blocks.
FEW = 2
AS_THEY_ARE = ("S", "BOOL", "L", "M", "SS", "stringValue", "doubleValue", "booleanValue", "timestampValue")
TYPES: Mapping[str, type] = {"S": str, "BOOL": bool, "L": list, "M": dict, "SS": list, "stringValue": str}


def of_json(text: str | bytes) -> Any:
    """A JSON value, with the types of MongoDB, DynamoDB and Firestore as the values that they are."""
    is_typed = TYPED_BYTES.search(text) if isinstance(text, bytes) else TYPED.search(text)
    return json.loads(text, object_hook=_plain) if is_typed else json.loads(text)


def parts_of_json(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at a place, in the same way, and where it ends."""
    return json.JSONDecoder(object_hook=_plain).raw_decode(text, start)


def _plain(value: dict[str, Any]) -> Any:
    """What it stands for, if it is one of the extended types; itself if it only looks like one."""
    if "cells" in value and (cells := _of_tensor(value["cells"])) is not None:
        return cells
    if isinstance(blocks := value.get("blocks"), dict) and len(blocks) > 1 and len(value) <= FEW:
        numbered = all(isinstance(one, list) for one in blocks.values()) and all(map(str.isdecimal, blocks))
        return [blocks[name] for name in sorted(blocks, key=int)] if numbered else value
    if value.get("__type__") == "__vector__" and isinstance(value.get("value"), list):
        return value["value"]
    if len(value) != 1:
        return value
    ((name, own),) = value.items()
    try:
        match name:
            case "$numberDouble" | "$numberDecimal":
                return float(own)
            case "$numberInt" | "$numberLong" | "integerValue":
                return int(own)
            case "N":
                return float(own) if isinstance(own, str) else value
            case "$oid":
                return own
            case "$binary":
                return _bytes(own)
            case "B" | "bytesValue":
                return base64.b64decode(own, validate=True)
            case "arrayValue" | "mapValue":
                inner = own.get("values" if name == "arrayValue" else "fields")
                return own if inner is None else inner
        return own if name in AS_THEY_ARE and isinstance(own, TYPES.get(name, object)) else value
    except (ValueError, TypeError, AttributeError):
        return value


def _of_tensor(cells: Any) -> list[Any] | None:
    """The numbers of a tensor of one dimension, each of which says its place: Vespa's ``{"address": {"x": "0"}}``."""
    try:
        found = {int(place): one["value"] for one in cells for place in one["address"].values()}
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    is_one = len(found) == len(cells) > 1 and sorted(found) == list(range(len(found)))
    return [found[place] for place in range(len(found))] if is_one else None


def _bytes(own: Mapping[str, Any]) -> Any:
    """Bytes, or the numbers of a vector."""
    raw = base64.b64decode(own["base64"], validate=True) if "base64" in own else b""
    kind = KINDS.get(raw[0]) if str(own.get("subType", "")).zfill(2) == VECTOR and len(raw) > 2 else None
    return raw if kind is None else read_bytes([raw[2:]], kind)[0].tolist()


# Deeper, nobody puts rows.
DEEPEST = 5
# Of an object of nothing but vectors: fewer are those of one row.
FEWEST_ROWS = 3
NAMED = 4
# Lists of rows, and parts in files, are one table if they share so many of their fields.
ALIKE = 0.5


class Held(NamedTuple):
    """Rows that a value holds, and where."""

    path: str
    rows: list[Record]


def rows_of(content: Any, shown: str = "", part: str | None = None) -> tuple[list[Record], tuple[str, ...]]:
    """The rows that a value holds, and what is to be known of it.

    Lists of rows of one form are one table; of several others that have vectors, one is to be named.

    Raises:
        SeveralParts: if it is unclear which are meant.
    """
    if isinstance(content, list):
        return list(_of_list(content, [])), ()
    found = list(_candidates(content, "", 0, {}))
    with_vectors = _joined([one for one in found if has_vectors(one.rows)])
    if len(with_vectors) > 1:
        names = [first_of(paths, NAMED) for paths, _ in with_vectors]
        paths, rows = with_vectors[names.index(part_meant(names, part, shown, "list"))]
    elif with_vectors:
        ((paths, rows),) = with_vectors
    else:
        return max((one.rows for one in found), key=len, default=None) or _by_key(content) or [content], ()
    note = f"The rows are those of {len(paths):,} lists, one after another: {first_of(paths, NAMED)}."
    return rows, (note,) if len(paths) > 1 else ()


def has_vectors(rows: Sequence[Record]) -> bool:
    """Whether one of the first rows has a vector somewhere in it."""
    return any(vector_paths(row) or pieces_path(row) for row in rows[:LOOKED_AT])


def _joined(found: Sequence[Held]) -> list[tuple[list[str], list[Record]]]:
    """Those of one form as one, with the paths of all."""
    forms: list[tuple[set[str], list[str], list[Record]]] = []
    for path, rows in found:
        own = {name for row in rows[:LOOKED_AT] for name, _ in flat(row)}
        same = next((one for one in forms if len(own & one[0]) >= ALIKE * len(own | one[0])), None)
        if same is None:
            forms.append((own, [path], list(rows)))
        else:
            same[1].append(path)
            same[2].extend(rows)
    return [(paths, rows) for _, paths, rows in forms]


def _candidates(content: Any, path: str, depth: int, beside: Mapping[str, list[Any]]) -> Iterator[Held]:
    """Every list of rows.

    Args:
        beside: lists that stand next to what is looked into: one as long as the rows is a column of them.
    """
    if not isinstance(content, Mapping) or depth > DEEPEST:
        return
    if (rows := _beside_a_matrix(content) or _by_name(content) or _columns(content, beside)) is not None:
        yield Held(path or "the file", rows)
        return
    if (rows := _keyed(content)) is not None:
        yield Held(path or "the file", rows)
        return
    lists = {**beside, **{name: value for name, value in content.items() if is_column(value)}}
    for name, value in content.items():
        own = f"{path}.{name}" if path else str(name)
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            same = {other: one for other, one in lists.items() if len(one) == len(value) and one is not value}
            columns = ({other: one[row] for other, one in same.items()} for row in range(len(value)))
            yield Held(own, [{**others, **row} for others, row in zip(columns, value, strict=True)])
        elif isinstance(value, list) and (cells := _of_cells(value, _names(content, value))) is not None:
            yield Held(own, cells)
        else:
            yield from _candidates(value, own, depth + 1, lists)


def _of_list(content: list[Any], names: Sequence[str]) -> Iterator[Record]:
    """A row for each item; lists of rows and pages of them are read one after another."""
    if (cells := _of_cells(content, names)) is not None:
        yield from cells
        return
    for row in content:
        if isinstance(row, list) and row and all(isinstance(one, Mapping) for one in row):
            yield from row
        else:
            yield row if isinstance(row, Mapping) else {"text": row} if isinstance(row, str) else {"vector": row}


def _of_cells(rows: list[Any], names: Sequence[str]) -> list[Record] | None:
    """Rows that are lists of cells, one of which is a vector; None if they are something else."""
    if not rows or not all(isinstance(row, list) and len(row) == len(rows[0]) > 1 for row in rows):
        return None
    first = next(iter(rows[1:]), rows[0])
    if is_vector(first) or not any(map(is_vector, first)) or all(map(is_vector, first)):
        return None
    if not names and len(rows) > 1 and all(isinstance(one, str) for one in rows[0]):
        names, rows = rows[0], rows[1:]
    names = names or [f"column {number}" for number in range(1, len(first) + 1)]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _names(content: Mapping[str, Any], rows: list[Any]) -> list[str]:
    """What stands beside cells and names them: a list of as many names, or of objects that have one."""
    width = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    for value in content.values():
        own = value.get("fields") if isinstance(value, Mapping) else value
        if isinstance(own, list) and own is not rows and len(own) == width:
            given = [one.get("name") if isinstance(one, Mapping) else one for one in own]
            names = [one for one in given if isinstance(one, str)]
            if len(names) == len(set(names)) == width:
                return names
    return []


def _columns(content: Mapping[str, Any], beside: Mapping[str, list[Any]]) -> list[Record] | None:
    """Rows of lists of one length, of which one holds vectors; such lists for each of several queries in one."""
    columns = {name: value for name, value in content.items() if isinstance(value, list)}
    if any(_are_lists_of_vectors(value) for value in columns.values()):
        columns = {
            name: list(chain.from_iterable(value))
            for name, value in columns.items()
            if all(isinstance(one, list) for one in value)
        }
    length = next((len(value) for value in columns.values() if are_vectors(value)), None)
    if length is None:
        return None
    same = {name: value for name, value in {**beside, **columns}.items() if len(value) == length}
    return [dict(zip(same, row, strict=True)) for row in zip(*same.values(), strict=True)]


def _are_lists_of_vectors(value: list[Any]) -> bool:
    present = [one for one in value if one is not None]
    return bool(present) and all(isinstance(one, list) and one and are_vectors(one) for one in present[:8])


def _by_name(content: Mapping[str, Any]) -> list[Record] | None:
    """Vectors by id, and what else is said by these ids in objects beside them: pandas' columns are such, too."""
    if content and all(map(is_vector, content.values())):
        return _named(content, {}, "vector")
    for name, own in content.items():
        if not isinstance(own, Mapping) or len(own) < FEWEST_ROWS or not all(map(is_vector, own.values())):
            continue
        others = {
            other: value
            for other, value in content.items()
            if other != name and isinstance(value, Mapping) and len(own.keys() & value.keys()) >= ALIKE * len(own)
        }
        if others:
            return _named(own, others, name)
    return None


def _named(vectors: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]], name: str) -> list[Record]:
    key = "text" if is_prose(list(vectors)) and "text" not in others else "id"
    return [
        {key: one, **{other: value.get(one) for other, value in others.items()}, name: vector}
        for one, vector in vectors.items()
    ]


def _keyed(content: Mapping[str, Any]) -> list[Record] | None:
    """Rows by id, each of which has a vector."""
    values = list(content.values())
    is_one = len(values) > 1 and all(isinstance(one, Mapping) and any(map(is_vector, one.values())) for one in values)
    return [{"id": name, **value} for name, value in content.items()] if is_one else None


def _by_key(content: Any) -> list[Record] | None:
    """Rows by id that have the same fields, where nothing in a value is a list of numbers: vectors may be bytes."""
    if not isinstance(content, Mapping):
        return None
    values = list(content.values())
    if len(values) >= FEWEST_ROWS and all(isinstance(one, Mapping) and one for one in values):
        shared = set.intersection(*(set(one) for one in values))
        if shared and len(shared) >= ALIKE * max(map(len, values)):
            return [{"id": name, **value} for name, value in content.items()]
    return max(filter(None, map(_by_key, values)), key=len, default=None)


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
