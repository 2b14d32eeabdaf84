"""Milvus Lite's file before 2.5: SQLite with a table for each collection, whose rows are messages of its protocol.

Its own library no longer opens it; the few fields of a message that matter are read here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from embaudit.checkpoint.onnx_file import fields_of, whole_number
from embaudit.stores.copies import connected, copied
from embaudit.stores.nested import Record, table_of_records
from embaudit.stores.place import ReadOptions, StorePlace, part_meant, quoted
from embaudit.stores.sqlite import MAGIC
from embaudit.stores.store import ONLY_READ, Metric, StoreKind, StoreTable
from embaudit.words.errors import CorpusError

META = b"CREATE TABLE collection_meta"
START_BYTES = 1 << 16
METRICS: Mapping[str, Metric] = {"COSINE": "cosine", "IP": "dot", "L2": "l2"}
# schemapb.FieldData: its name, its scalars or its vectors; of each, which field holds what.
NAME, SCALARS, VECTORS = 2, 3, 4
FLOATS = {4: "<f4", 5: "<f8"}
WHOLE, TEXTS, JSON = (1, 2, 3), (6,), (9,)
# Of vectors, besides float32 in a message of its own: bytes.
FLOAT_VECTOR = 2
PACKED = {3: "uint8", 4: "<f2", 5: "bfloat16", 7: "int8"}
INNER = ("RowID", "Timestamp")
DYNAMIC = "$meta"
OPEN_A_COPY = "Open a copy of it with the version that wrote it: pip install 'milvus-lite<2.5'"


def is_milvus_file(place: StorePlace) -> bool:
    if not place.head.startswith(MAGIC):
        return False
    with place.path.open("rb") as file:
        return META in file.read(START_BYTES)


def open_file(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection of the file; read from a copy if another program has it open."""
    file = copied(place.path, ("-wal", "-journal"))
    with connected(place, file, OPEN_A_COPY) as connection:
        connection.text_factory = bytes
        told = connection.execute("SELECT collection_name, meta_type, blob_field, string_field FROM collection_meta")
        meta = [tuple(one.decode(errors="replace") if i != 2 else one for i, one in enumerate(row)) for row in told]
        names = [name for name, what, _, _ in meta if what == "schema"]
        name = part_meant(names, asked.part, place.shown)
        rows = connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0]
    key = next(field for one, what, _, field in meta if (one, what) == (name, "schema"))
    metric = next((_metric(blob) for one, what, blob, _ in meta if (one, what) == (name, "index")), "")

    def records() -> Iterator[Record]:
        with connected(place, file, OPEN_A_COPY) as connection:
            connection.text_factory = bytes
            for number, data in connection.execute(f"SELECT id, data FROM {quoted(name)} ORDER BY id"):
                try:
                    yield row_of(data)
                except (LookupError, TypeError, AttributeError, ValueError) as error:
                    raise CorpusError(
                        f"{place.shown} cannot be read: row {number:,} of {name} is no message of Milvus's.",
                        kept=ONLY_READ,
                        next_step=OPEN_A_COPY,
                    ) from error

    return table_of_records(
        f"{place.shown}, collection {name}", records, rows=rows, id=key, metric=METRICS.get(metric, "")
    )


def row_of(data: bytes) -> Record:
    """A row's fields; dynamic ones beside the others."""
    row: dict[str, Any] = {}
    for field, message in _fields_of(data):
        if field != 1 or not isinstance(message, bytes):
            continue
        own = dict(_fields_of(message))
        name = own.get(NAME, b"").decode()
        if name in INNER:
            continue
        value = _vector(own[VECTORS]) if VECTORS in own else _scalar(own.get(SCALARS, b""))
        if name == DYNAMIC:
            row |= value if isinstance(value, dict) else {}
        else:
            row[name] = value
    return row


def _fields_of(message: bytes) -> Iterator[tuple[int, Any]]:
    """The numbered fields of a protobuf message: whole numbers, and bytes of what is longer."""
    for field, _, value in fields_of(memoryview(message), 0):
        yield field, value if isinstance(value, int) else bytes(value)


def _vector(message: bytes) -> Any:
    for field, value in _fields_of(message):
        if field == FLOAT_VECTOR:
            return np.frombuffer(dict(_fields_of(value))[1], dtype="<f4")
        if field in PACKED:
            if PACKED[field] == "bfloat16":
                return (np.frombuffer(value, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
            return np.frombuffer(value, dtype=PACKED[field])
    return None


def _scalar(message: bytes) -> Any:
    for field, value in _fields_of(message):
        inner = dict(_fields_of(value)).get(1) if isinstance(value, bytes) else None
        if inner is None:
            return None
        if field in WHOLE:
            return whole_number(memoryview(inner), 0)[0] if isinstance(inner, bytes) else inner
        if field in FLOATS:
            return float(np.frombuffer(inner, dtype=FLOATS[field])[0])
        if field in TEXTS:
            return inner.decode(errors="replace")
        if field in JSON:
            with suppress(ValueError):
                return json.loads(inner)
    return None


def _metric(blob: bytes) -> str:
    """What an index ranks by: of its pairs, that of ``metric_type``."""
    with suppress(LookupError, TypeError, ValueError):
        for _, pair in _fields_of(blob):
            own = dict(_fields_of(pair)) if isinstance(pair, bytes) and pair.startswith(b"\n") else {}
            if own.get(1) == b"metric_type":
                return str(own.get(2, b""), "ascii")
    return ""


KINDS = (
    StoreKind(
        name="Milvus Lite's file",
        recognises=is_milvus_file,
        open=open_file,
        looks="a file of Milvus Lite before 2.5 (.db)",
        tried="files of milvus-lite 2.4.12",
    ),
)
