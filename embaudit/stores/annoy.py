"""Annoy's index: nodes of one size and no header, each item's vector in a node of its own, the trees behind them.

The size of a node is not written: it is the one at which every item has one descendant, itself, and the last node is
the root of a tree, which has them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embaudit.stores.damage import FETCH, reported
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import Metric
from embaudit.stores.table import BATCH_ROWS, StoreColumn, StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError

SUFFIXES = (".ann", ".annoy")
# What stands before a node's vector, in numbers of 4 bytes: descendants, and by the metric children, norm or bias.
ANGULAR, OTHERS = 3, 4
FEWEST_NUMBERS, MOST_NUMBERS = 2, 16_384
LOOKED_AT, CLOSE = 64, 1e-3
ID, VECTOR = "id", "vector"


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
    return place.suffix in SUFFIXES and not place.is_folder and layout_of(place) is not None


def layout_of(place: StorePlace) -> AnnoyLayout | None:
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
    layout = layout_of(place)
    if layout is None:
        raise CorpusError(f"{place.shown} is no index of Annoy.", next_step=FETCH)
    with reported(place.shown):
        nodes = np.memmap(place.path, "<f4", "r").reshape(-1, layout.width)[: layout.items]
        kept = np.flatnonzero(nodes[:, 0].view("<i4") == 1)

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for first in range(0, len(kept), BATCH_ROWS):
            some = kept[first : first + BATCH_ROWS]
            values: dict[str, Values] = {VECTOR: np.array(nodes[some, layout.before :]), ID: some.tolist()}
            yield {name: values[name] for name in names}

    dimension = layout.width - layout.before
    metric: Metric = "cosine" if layout.before == ANGULAR else ""
    columns = {
        VECTOR: StoreColumn("matrix of item: float32", "vector", ([0.0] * dimension,)),
        ID: StoreColumn("whole number", "other", tuple(kept[:20].tolist())),
    }
    note = (
        f"An index of Annoy does not say how many numbers its vectors have: by the size of its nodes, {dimension:,}. "
        "If they have others, export them where they were made: a.get_item_vector(i)"
    )
    return StoreTable(place.shown, columns, read, rows=len(kept), vector=VECTOR, id=ID, metric=metric, notes=(note,))


KINDS = (
    StoreKind(
        name="Annoy",
        recognises=is_annoy,
        open=open_annoy,
        looks="an index of Annoy (.ann, .annoy)",
        tried="files of annoy 1.17 (by hand)",
    ),
)
