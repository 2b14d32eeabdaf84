"""Index files that need no library to be read.

Annoy's index: nodes of one size and no header, each item's vector in a node of its own, the trees behind them.

The size of a node is not written: it is the one at which every item has one descendant, itself, and the last node is
the root of a tree, which has them all.

hnswlib's index: a header, and a block for each row with its links, its vector and its number.

usearch's index: the matrix of its vectors, a head of 64 bytes, and the graph, in whose nodes the keys stand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import BATCH_ROWS, FETCH, Metric, StoreColumn, StoreKind, StoreTable, Values, reported
from embaudit.words.errors import CorpusError

# HierarchicalNSW::saveIndex of hnswlib 0.5 to 0.8: where level 0 begins, most rows, rows, bytes of a row, where its
# number and its vector stand in it, levels, entry, links (three numbers), the levels' factor, ef of construction.
HEADER = struct.Struct("<6QiI3QdQ")
# The third byte of a row: it was deleted.
DELETED = 2
HNSWLIB_ID, HNSWLIB_VECTOR = "id", "vector"


def is_hnswlib(place: StorePlace) -> bool:
    return place.is_path and not place.is_folder and _layout(place) is not None


def _layout(place: StorePlace) -> tuple[int, int, int, int] | None:
    """Rows, bytes of a row, where its vector begins and ends; None if the header is none of hnswlib's."""
    if not place.head.startswith(bytes(8)) or not place.path.is_file():
        return None
    with place.path.open("rb") as file:
        start = file.read(HEADER.size)
    if len(start) < HEADER.size:
        return None
    first, most, rows, size, number, vector, _, _, links, links_below, _, factor, _ = HEADER.unpack(start)
    fits = (
        first == 0
        and 0 < rows <= most
        and size == number + 8
        and vector == 4 * links_below + 4
        and number > vector
        and not (number - vector) % 4
        and 0 < links <= links_below
        and 0 < factor < 2
        and place.path.stat().st_size >= HEADER.size + rows * size
    )
    return (rows, size, vector, number) if fits else None


def open_hnswlib(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """Rows that were not deleted, by the numbers under which they were added; its texts are elsewhere (``--texts``)."""
    layout = _layout(place)
    if layout is None:
        raise CorpusError(f"{place.shown} is no index of hnswlib.", next_step=FETCH)
    rows, size, start, end = layout
    blocks = np.memmap(place.path, np.uint8, "r", HEADER.size, (rows, size))
    with reported(place.shown):
        kept = np.flatnonzero((np.array(blocks[:, DELETED]) & 1) == 0)

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for first in range(0, len(kept), BATCH_ROWS):
            some = blocks[kept[first : first + BATCH_ROWS]]
            values: dict[str, Values] = {HNSWLIB_VECTOR: some[:, start:end].copy().view("<f4")}
            values[HNSWLIB_ID] = some[:, end:].copy().view("<u8")[:, 0].tolist()
            yield {name: values[name] for name in names}

    columns = {
        HNSWLIB_VECTOR: StoreColumn("matrix of item: float32", "vector", ([0.0] * ((end - start) // 4),)),
        HNSWLIB_ID: StoreColumn(
            "whole number", "other", tuple(next(read([HNSWLIB_ID]), {HNSWLIB_ID: []})[HNSWLIB_ID][:20])
        ),
    }
    return StoreTable(place.shown, columns, read, rows=len(kept), vector=HNSWLIB_VECTOR, id=HNSWLIB_ID)


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
USEARCH_ID, USEARCH_VECTOR = "id", "vector"


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
    return place.is_path and not place.is_folder and layout_of_usearch(place) is not None


def layout_of_usearch(place: StorePlace) -> UsearchLayout | None:
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
    layout = layout_of_usearch(place)
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
            values: dict[str, Values] = {USEARCH_VECTOR: rows, USEARCH_ID: keys[some].tolist()}
            yield {name: values[name] for name in names}

    is_whole = dtype.kind == "i"
    columns = {
        USEARCH_VECTOR: StoreColumn(
            f"matrix of item: {dtype.name}",
            "whole numbers" if is_whole else "vector",
            ([0 if is_whole else 0.0] * layout.dimension,),
        ),
        USEARCH_ID: StoreColumn("whole number", "other", tuple(keys[kept[:20]].tolist())),
    }
    metric = METRICS.get(layout.metric, "")
    return StoreTable(place.shown, columns, read, rows=len(kept), vector=USEARCH_VECTOR, id=USEARCH_ID, metric=metric)


def _keys(graph: bytes, layout: UsearchLayout) -> np.ndarray:
    """(n,) keys of the rows: each node's first number; a node is the longer the more levels it is on."""
    rows, links, ground, _, _ = GRAPH.unpack_from(graph)
    levels = np.frombuffer(graph, "<i2", rows, GRAPH.size).astype(np.int64)
    place = PLACES[layout.places]
    sizes = NODE_KEY + LEVEL + ground * place + COUNT + levels * (links * place + COUNT)
    starts = GRAPH.size + rows * LEVEL + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.array([int.from_bytes(graph[at : at + NODE_KEY], "little") for at in starts.tolist()], dtype=np.uint64)


SUFFIXES = (".ann", ".annoy")
# What stands before a node's vector, in numbers of 4 bytes: descendants, and by the metric children, norm or bias.
ANGULAR, OTHERS = 3, 4
FEWEST_NUMBERS, MOST_NUMBERS = 2, 16_384
LOOKED_AT, CLOSE = 64, 1e-3
ANNOY_ID, ANNOY_VECTOR = "id", "vector"


class AnnoyLayout(NamedTuple):
    """Where the vectors stand.

    Attributes:
        width: of a node, in numbers of 4 bytes; before: how many of these are no number of the vector.
        items: nodes from the first on, of which those without an item are left out.
    """

    width: int
    before: int
    items: int


def is_annoy(place: StorePlace) -> bool:
    return place.suffix in SUFFIXES and not place.is_folder and layout_of_annoy(place) is not None


def layout_of_annoy(place: StorePlace) -> AnnoyLayout | None:
    """How a file is laid out; None if it is not Annoy's, or of bits."""
    if not place.path.is_file() or place.path.stat().st_size % 4 or not place.path.stat().st_size:
        return None
    numbers = np.memmap(place.path, "<i4", "r")
    for width in range(ANGULAR + FEWEST_NUMBERS, min(len(numbers), OTHERS + MOST_NUMBERS) + 1):
        if len(numbers) % width:
            continue
        descendants = numbers[::width]
        is_no_item = (descendants != 0) & (descendants != 1)
        items = int(np.argmax(is_no_item)) if is_no_item.any() else len(descendants)
        if not items or (descendants < 0).any() or not descendants[:items].any():
            continue
        # Without a tree, there are items alone; numbers of items that were left out have nodes of zeros.
        if descendants[-1] == items if items < len(descendants) else descendants.all():
            return AnnoyLayout(width, _before(numbers.reshape(-1, width)[:items]), items)
    return None


def _before(nodes: np.ndarray) -> int:
    """An item of the angular metric has the square of its length before its numbers; of the others, a number more."""
    some = nodes[nodes[:, 0] == 1][:LOOKED_AT].view("<f4").astype(np.float64)
    with np.errstate(all="ignore"):
        is_length = np.isclose(some[:, 1], (some[:, ANGULAR:] ** 2).sum(axis=1), rtol=CLOSE)
    return ANGULAR if bool(is_length.all()) else OTHERS


def open_annoy(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """Items by their numbers; what they are of is elsewhere (``--texts``)."""
    layout = layout_of_annoy(place)
    if layout is None:
        raise CorpusError(f"{place.shown} is no index of Annoy.", next_step=FETCH)
    with reported(place.shown):
        nodes = np.memmap(place.path, "<f4", "r").reshape(-1, layout.width)[: layout.items]
        kept = np.flatnonzero(nodes[:, 0].view("<i4") == 1)

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for first in range(0, len(kept), BATCH_ROWS):
            some = kept[first : first + BATCH_ROWS]
            values: dict[str, Values] = {ANNOY_VECTOR: np.array(nodes[some, layout.before :]), ANNOY_ID: some.tolist()}
            yield {name: values[name] for name in names}

    dimension = layout.width - layout.before
    metric: Metric = "cosine" if layout.before == ANGULAR else ""
    columns = {
        ANNOY_VECTOR: StoreColumn("matrix of item: float32", "vector", ([0.0] * dimension,)),
        ANNOY_ID: StoreColumn("whole number", "other", tuple(kept[:20].tolist())),
    }
    note = (
        f"An index of Annoy does not say how many numbers its vectors have: by the size of its nodes, {dimension:,}. "
        "If they have others, export them where they were made: a.get_item_vector(i)"
    )
    return StoreTable(
        place.shown, columns, read, rows=len(kept), vector=ANNOY_VECTOR, id=ANNOY_ID, metric=metric, notes=(note,)
    )


KINDS = (
    StoreKind(
        name="hnswlib",
        recognises=is_hnswlib,
        open=open_hnswlib,
        looks="an index of hnswlib (.bin)",
        tried="files of hnswlib 0.8",
    ),
    StoreKind(
        name="usearch",
        recognises=is_usearch,
        open=open_usearch,
        looks="an index of usearch (.usearch, .bin, .index)",
        tried="files of usearch 2 (by hand)",
    ),
    StoreKind(
        name="Annoy",
        recognises=is_annoy,
        open=open_annoy,
        looks="an index of Annoy (.ann, .annoy)",
        tried="files of annoy 1.17 (by hand)",
    ),
)
