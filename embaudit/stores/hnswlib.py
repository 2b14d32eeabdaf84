"""hnswlib's index: a header, and a block for each row with its links, its vector and its number."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from embaudit.stores.damage import FETCH, reported
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import BATCH_ROWS, StoreColumn, StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError

# HierarchicalNSW::saveIndex of hnswlib 0.5 to 0.8: where level 0 begins, most rows, rows, bytes of a row, where its
# number and its vector stand in it, levels, entry, links (three numbers), the levels' factor, ef of construction.
HEADER = struct.Struct("<6QiI3QdQ")
# The third byte of a row: it was deleted.
DELETED = 2
ID, VECTOR = "id", "vector"


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
            values: dict[str, Values] = {VECTOR: some[:, start:end].copy().view("<f4")}
            values[ID] = some[:, end:].copy().view("<u8")[:, 0].tolist()
            yield {name: values[name] for name in names}

    columns = {
        VECTOR: StoreColumn("matrix of item: float32", "vector", ([0.0] * ((end - start) // 4),)),
        ID: StoreColumn("whole number", "other", tuple(next(read([ID]), {ID: []})[ID][:20])),
    }
    return StoreTable(place.shown, columns, read, rows=len(kept), vector=VECTOR, id=ID)


KINDS = (
    StoreKind(
        name="hnswlib",
        recognises=is_hnswlib,
        open=open_hnswlib,
        looks="an index of hnswlib (.bin)",
        tried="files of hnswlib 0.8",
    ),
)
