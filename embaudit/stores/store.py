"""What is measured of stored vectors: their rows in batches, wherever they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from embaudit.stores.drawn import DrawnGroups
from embaudit.stores.template import Template

if TYPE_CHECKING:
    from embaudit.stores.search import StoreSearch

Metric = Literal["cosine", "dot", "l2", ""]
Rounded = Callable[[np.ndarray], np.ndarray]
# By dimension D: the places (m,) of the rows that have so many numbers, and these (m, D).
ByDimension = Mapping[int, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class RowBatch:
    """Consecutive rows of a store.

    Attributes:
        start: number of the first one, from 0.
        rows: how many.
        vectors: by dimension D, the places (m,) in this batch of the rows that have so many numbers, and these (m, D).
            A row in none of them has no vector.
        texts, ids: of each row; None where the store has no such column.
        fields: what else was asked for, by name, of each row.
    """

    start: int
    rows: int
    vectors: ByDimension
    texts: Sequence[str | None] | None = None
    ids: Sequence[object] | None = None
    fields: Mapping[str, Sequence[object]] = field(default_factory=dict)


class Batches(Protocol):
    """Reads a store from the start, with these other fields of its rows."""

    def __call__(self, fields: Sequence[str] = (), /) -> Iterator[RowBatch]: ...


@dataclass(frozen=True)
class Store:
    """Vectors that can be read as often as wanted, every time in the same order.

    Attributes:
        shown: as the user named it, without credentials.
        columns: what the vector, text and id columns are called; only those that there are.
        numbers: how numbers are stored: ``float32``, ``int8``, ``text`` …
        batches: reads it from the start.
        rows: how many there are, if that is known before they are read.
        fields: the other columns, by their dotted names.
        kind: what it is: ``Parquet``, ``Chroma`` …
        metric: what it ranks by, if it says so.
        notes: what to know of how it was read, a sentence each.
        rounded: what it gives back of (n, D) vectors that are put into it; None if it keeps them as they are.
        template: makes what was embedded of a row's fields; None if that is the text column.
        search: opens its own search; None if it has none that can be asked. Raises UsageError if it has no ids by which
            results are told apart, CorpusError if it cannot be opened.
        drawn: which of its rows are read, if these are not all.
        where: rows whose field has this value are the rows of this store; (name, value) each, empty for all.
    """

    shown: str
    columns: Mapping[str, str]
    numbers: str
    batches: Batches
    rows: int | None = None
    fields: tuple[str, ...] = ()
    kind: str = ""
    metric: Metric = ""
    notes: tuple[str, ...] = ()
    rounded: Rounded | None = None
    template: Template | None = None
    search: Callable[[], StoreSearch] | None = None
    where: tuple[tuple[str, object], ...] = ()
    drawn: DrawnGroups | None = None

    @property
    def has_texts(self) -> bool:
        return "text" in self.columns
