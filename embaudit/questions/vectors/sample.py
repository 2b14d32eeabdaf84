"""A random sample of rows from a stream, and chosen rows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.stores.store import RowBatch, Store

# Behind a number of rows that is no estimate.
EXACT = ": exact, since each was encoded again"
# Where it gives texts no vectors.
LOOK_FIRST = "Look at the {} first: embaudit check says what it does with texts."


@dataclass(frozen=True)
class SomeRows:
    """Some rows of an index, all of one dimension.

    Attributes:
        numbers: (m,) number of each row, from 0.
        vectors: (m, D) as stored.
        texts, ids: of each; a text is None where there is none, an id where there is no such column.
    """

    numbers: np.ndarray
    vectors: np.ndarray
    texts: tuple[str | None, ...]
    ids: tuple[object, ...]

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, places: Sequence[int] | np.ndarray) -> SomeRows:
        """Those at these places, in this order."""
        chosen = np.asarray(places, dtype=np.int64)
        return SomeRows(
            self.numbers[chosen],
            self.vectors[chosen],
            tuple(self.texts[place] for place in chosen),
            tuple(self.ids[place] for place in chosen),
        )

    @property
    def with_text(self) -> SomeRows:
        return self.at([place for place, text in enumerate(self.texts) if text is not None])


class RowDraw:
    """Keeps the rows with the smallest of independent random keys: a uniform sample without replacement.

    The first n of those kept are a sample of n, and so are the first n that have a property, of the rows that have it.

    Args:
        most: how many rows are kept.
        seed: of the keys. The same file gives the same sample.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._generator = np.random.default_rng(seed)
        self._keys: list[np.ndarray] = []
        self._parts: list[SomeRows] = []
        self._bound = np.inf
        self._held = 0

    def add(self, batch: RowBatch, places: np.ndarray, vectors: np.ndarray) -> None:
        """Offer the rows of a batch at these places, with their vectors (m, D)."""
        keys = self._generator.random(len(places))
        chosen = np.flatnonzero(keys < self._bound)
        if not len(chosen):
            return
        self._keys.append(keys[chosen])
        self._parts.append(_picked(batch, places[chosen], vectors[chosen]))
        self._held += len(chosen)
        # Sorted out from time to time: half of what is held then is given up.
        if self._held > 2 * self._most:
            keys, rows = self._sorted()
            self._keys, self._parts = [keys], [rows]
            self._bound, self._held = float(keys[-1]), len(rows)

    def rows(self) -> SomeRows:
        """The rows, by key: in random order."""
        return self._sorted()[1]

    def _sorted(self) -> tuple[np.ndarray, SomeRows]:
        keys = np.concatenate(self._keys) if self._keys else np.empty(0)
        order = np.argsort(keys)[: self._most]
        return keys[order], joined(self._parts, 0).at(order)


def _picked(batch: RowBatch, places: np.ndarray, vectors: np.ndarray) -> SomeRows:
    """Rows at these places of a batch."""
    own = places.tolist()
    return SomeRows(
        batch.start + places,
        vectors,
        tuple(batch.texts[place] for place in own) if batch.texts is not None else (None,) * len(own),
        tuple(batch.ids[place] for place in own) if batch.ids is not None else (None,) * len(own),
    )


def rows_of(batch: RowBatch, wanted: np.ndarray, dimension: int) -> SomeRows:
    """The rows of a batch with these numbers that have so many numbers each."""
    places, vectors = batch.vectors.get(dimension, (np.empty(0, np.int64), np.empty((0, dimension))))
    inside = np.flatnonzero(np.isin(batch.start + places, wanted))
    return _picked(batch, places[inside], vectors[inside])


def joined(parts: Iterable[SomeRows], dimension: int) -> SomeRows:
    """All of them together."""
    found = [part for part in parts if len(part)]
    if not found:
        return SomeRows(np.empty(0, np.int64), np.empty((0, dimension)), (), ())
    return SomeRows(
        np.concatenate([part.numbers for part in found]),
        np.concatenate([part.vectors for part in found]),
        tuple(text for part in found for text in part.texts),
        tuple(one for part in found for one in part.ids),
    )


def label(index: Store, number: int, row_id: object) -> str:
    """How a row is called: by its id where there is one."""
    return f"row {number + 1:,}" if row_id is None else f"{index.columns.get('id', 'id')} {row_id}"


def share_as_json(share: tuple[float, float, float], is_exact: bool) -> dict[str, object]:
    """A share with its 95 % interval, and whether it is exact instead: of every row, and not from a sample."""
    return {**dict(zip(("value", "low", "high"), share, strict=True)), "is_exact": is_exact}
