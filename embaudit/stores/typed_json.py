"""JSON whose values are written with their types, as MongoDB, DynamoDB and Firestore export them, and Vespa's cells."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from embaudit.stores.written import read_bytes

NUMBERS = ("$numberDouble", "$numberInt", "$numberLong", "$numberDecimal")
# BSON's vectors: two bytes before the numbers say what they are, and how many bits at the end are none.
VECTOR, KINDS = "09", {0x27: "float32", 0x03: "int8", 0x10: "bits"}
# What shows that values are written with their types: MongoDB's, DynamoDB's, Firestore's; Vespa's cells of a tensor.
TYPED = re.compile(r'"\$|"[SN]"\s*:|Value"\s*:|"(?:cells|blocks)"\s*:')
TYPED_BYTES = re.compile(TYPED.pattern.encode())
# What a tensor has: its type, and its blocks.
FEW = 2
AS_THEY_ARE = ("S", "BOOL", "L", "M", "SS", "stringValue", "doubleValue", "booleanValue", "timestampValue")


def of_json(text: str | bytes) -> Any:
    """A JSON value, with the types of MongoDB, DynamoDB and Firestore as the values that they are."""
    is_typed = TYPED_BYTES.search(text) if isinstance(text, bytes) else TYPED.search(text)
    return json.loads(text, object_hook=_plain) if is_typed else json.loads(text)


def parts_of_json(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at a place, in the same way, and where it ends."""
    return json.JSONDecoder(object_hook=_plain).raw_decode(text, start)


def _plain(value: dict[str, Any]) -> Any:
    """What it stands for, if it is one of the extended types; itself if it only looks like one."""
    if "cells" in value and (cells := _of_cells(value["cells"])) is not None:
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


TYPES: Mapping[str, type] = {"S": str, "BOOL": bool, "L": list, "M": dict, "SS": list, "stringValue": str}


def _of_cells(cells: Any) -> list[Any] | None:
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
