"""Rows in columns, as a format or a client gives them, before it is known which of them are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from embaudit.stores.drawn import DrawnGroups
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import Metric, Rounded

if TYPE_CHECKING:
    from embaudit.stores.search import OpenSearch

# One column of some rows: an Arrow array, a matrix (n, D), or values.
Values: TypeAlias = Any
What = Literal["vector", "whole numbers", "bytes", "text", "other"]
BATCH_ROWS = 4_096
# Values of a column that are looked at to see what it holds.
LOOKED_AT = 200


@dataclass(frozen=True)
class StoreColumn:
    """What a column holds, from its type and its first values.

    Attributes:
        type: as messages call it.
        what: ``vector`` for lists of fractions, ``whole numbers`` for lists of those; ``other`` may be anything.
        some: its first values that are not null.
        numbers: what its bytes are, if the store says so: ``float32``, ``int8``, ``bits``.
    """

    type: str
    what: What
    some: tuple[object, ...] = ()
    numbers: str = ""


@dataclass(frozen=True)
class StoreTable:
    """Rows in columns, which can be read as often as wanted, in the same order.

    Attributes:
        shown: as messages call it, without credentials.
        columns: by name; what is nested, by its dotted path.
        read: reads these columns from the start, in batches of any size: by name, of all rows of a batch.
        rows: how many there are, if that is known.
        vector, text, id: columns that the store itself says to be these; empty where it does not say.
        metric: what it ranks by, if it says so.
        notes: what to know of how it was read, a sentence each.
        rounded: what it gives back of (n, D) vectors that are put into it; None if it keeps them as they are.
        is_pinned: whether every pass reads the same state, whatever others write meanwhile.
        search: opens its own search of a column of vectors; None if it has none that can be asked.
        draw: the table of at least so many rows, in groups drawn at random by a seed; None if it must be read whole.
        drawn: which rows these are, of such a table.
    """

    shown: str
    columns: Mapping[str, StoreColumn]
    read: Callable[[Sequence[str]], Iterator[Mapping[str, Values]]]
    rows: int | None = None
    vector: str = ""
    text: str = ""
    id: str = ""
    metric: Metric = ""
    notes: tuple[str, ...] = ()
    rounded: Rounded | None = None
    is_pinned: bool = False
    search: OpenSearch | None = None
    draw: Callable[[int, int], StoreTable] | None = None
    drawn: DrawnGroups | None = None


@dataclass(frozen=True)
class StoreKind:
    """One way in which people keep vectors.

    Attributes:
        name: as people call it.
        recognises: whether a place is one; it looks at names and first bytes, and imports nothing heavy.
        open: its rows. Raises UsageError if it is unclear which are meant, CorpusError if they cannot be read.
        looks: how one is recognised, for the docs and for messages.
        tried: what it was tried with: the documented form, an embedded engine, a real server.
        extra: what to install for it: ``faiss`` in ``pip install 'embaudit[faiss]'``.
        takes_gzip: whether its files may be compressed.
    """

    name: str
    recognises: Callable[[StorePlace], bool]
    open: Callable[[StorePlace, ReadOptions], StoreTable]
    looks: str
    tried: str
    extra: str = ""
    takes_gzip: bool = False
