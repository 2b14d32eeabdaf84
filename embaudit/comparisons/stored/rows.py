"""What is measured of an index: its rows in batches, as any reader gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RowBatch:
    """Consecutive rows of an index.

    Attributes:
        start: number of the first one, from 0.
        rows: how many.
        vectors: by dimension D, the places (m,) in this batch of the rows that have so many numbers, and these (m, D).
            A row in none of them has no vector.
        texts, ids: of each row; None where the index has no such column.
    """

    start: int
    rows: int
    vectors: Mapping[int, tuple[np.ndarray, np.ndarray]]
    texts: Sequence[str | None] | None = None
    ids: Sequence[object] | None = None


@dataclass(frozen=True)
class StoredIndex:
    """An index that can be read as often as wanted, every time in the same order.

    Attributes:
        shown: as the user named it, without credentials.
        columns: what the vector, text and id columns are called; only those that there are.
        numbers: how numbers are stored: ``float32``, ``int8``, ``text`` …
        batches: reads it from the start.
        rows: how many there are, if that is known before they are read.
    """

    shown: str
    columns: Mapping[str, str]
    numbers: str
    batches: Callable[[], Iterator[RowBatch]]
    rows: int | None = None

    @property
    def has_texts(self) -> bool:
        return "text" in self.columns


def unit_float32(vectors: np.ndarray) -> np.ndarray:
    """(n, D) float32 rows of length 1; a row of zeros stays, one with NaN becomes NaN."""
    rows = np.asarray(vectors, dtype=np.float32)
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return rows / np.where(norms > 0, norms, 1)[:, None]
