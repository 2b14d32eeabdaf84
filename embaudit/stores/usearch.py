"""usearch's index: the matrix of its vectors, a head of 64 bytes, and the graph, in whose nodes the keys stand."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embaudit.stores.damage import FETCH, reported
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import Metric
from embaudit.stores.table import BATCH_ROWS, StoreColumn, StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError

# index_dense_gt::save_to_stream of usearch 2: rows and bytes of a row, the matrix, and this head. In it: the version,
# the metric, the kinds of numbers, keys and places, rows, rows that were removed, dimensions.
SIZES = (struct.Struct("<2I"), struct.Struct("<2Q"))
MAGIC = b"usearch"
HEAD, HEAD_BYTES = struct.Struct("<7s3H4B3Q"), 64
# index_gt: rows, links of a node, at the ground level, levels, entry.
GRAPH = struct.Struct("<5Q")
NUMBERS: Mapping[int, str] = {10: "<f8", 11: "<f4", 12: "<f2", 4: "<u2", 23: "i1"}
BFLOAT16 = 4
PLACES: Mapping[int, int] = {2: 5, 14: 8, 15: 4}
KEYS_U64, NO_KEY = 14, 2**64 - 1
METRICS: Mapping[int, Metric] = {ord("c"): "cosine", ord("i"): "dot", ord("e"): "l2"}
NODE_KEY, LEVEL, COUNT = 8, 2, 4
ID, VECTOR = "id", "vector"


class UsearchLayout(NamedTuple):
    """Where what stands.

    Attributes:
        start: of the matrix; rows, width: of it, in bytes; head: where the head begins.
        numbers, places: kinds, as usearch numbers them.
    """

    start: int
    rows: int
    width: int
    head: int
    metric: int
    numbers: int
    places: int
    dimension: int


def is_usearch(place: StorePlace) -> bool:
    return place.is_path and not place.is_folder and layout_of(place) is not None


def layout_of(place: StorePlace) -> UsearchLayout | None:
    """How a file is laid out; None if it is not usearch's, has no vectors in it, or numbers of another kind."""
    if place.suffix not in (".usearch", ".bin", ".index", ".idx") or not place.path.is_file():
        return None
    size = place.path.stat().st_size
    with place.path.open("rb") as file:
        for sizes in SIZES:
            file.seek(0)
            if len(start := file.read(sizes.size)) < sizes.size:
                return None
            rows, width = sizes.unpack(start)
            head = sizes.size + rows * width
            if not rows or not width or head + HEAD_BYTES + GRAPH.size > size:
                continue
            file.seek(head)
            magic, _, _, _, metric, numbers, keys, places, _, _, dimension = HEAD.unpack(file.read(HEAD.size))
            known = numbers in NUMBERS and keys == KEYS_U64 and places in PLACES
            if magic == MAGIC and known and np.dtype(NUMBERS[numbers]).itemsize * dimension == width:
                return UsearchLayout(sizes.size, rows, width, head, metric, numbers, places, dimension)
    return None


def open_usearch(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """Rows that were not removed, by their keys; what they are of is elsewhere (``--texts``)."""
    layout = layout_of(place)
    if layout is None:
        raise CorpusError(f"{place.shown} is no index of usearch.", next_step=FETCH)
    with reported(place.shown):
        keys = _keys(place.path.read_bytes()[layout.head + HEAD_BYTES :], layout)
        kept = np.flatnonzero(keys != NO_KEY)
        dtype = np.dtype(NUMBERS[layout.numbers])
        matrix = np.memmap(place.path, dtype, "r", layout.start, (layout.rows, layout.dimension))

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for first in range(0, len(kept), BATCH_ROWS):
            some = kept[first : first + BATCH_ROWS]
            rows = np.array(matrix[some])
            if layout.numbers == BFLOAT16:
                rows = (rows.astype(np.uint32) << 16).view(np.float32)
            values: dict[str, Values] = {VECTOR: rows, ID: keys[some].tolist()}
            yield {name: values[name] for name in names}

    is_whole = dtype.kind == "i"
    columns = {
        VECTOR: StoreColumn(
            f"matrix of item: {dtype.name}",
            "whole numbers" if is_whole else "vector",
            ([0 if is_whole else 0.0] * layout.dimension,),
        ),
        ID: StoreColumn("whole number", "other", tuple(keys[kept[:20]].tolist())),
    }
    metric = METRICS.get(layout.metric, "")
    return StoreTable(place.shown, columns, read, rows=len(kept), vector=VECTOR, id=ID, metric=metric)


def _keys(graph: bytes, layout: UsearchLayout) -> np.ndarray:
    """(n,) keys of the rows: each node's first number; a node is the longer the more levels it is on."""
    rows, links, ground, _, _ = GRAPH.unpack_from(graph)
    levels = np.frombuffer(graph, "<i2", rows, GRAPH.size).astype(np.int64)
    place = PLACES[layout.places]
    sizes = NODE_KEY + LEVEL + ground * place + COUNT + levels * (links * place + COUNT)
    starts = GRAPH.size + rows * LEVEL + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.array([int.from_bytes(graph[at : at + NODE_KEY], "little") for at in starts.tolist()], dtype=np.uint64)


KINDS = (
    StoreKind(
        name="usearch",
        recognises=is_usearch,
        open=open_usearch,
        looks="an index of usearch (.usearch, .bin, .index)",
        tried="files of usearch 2 (by hand)",
    ),
)
