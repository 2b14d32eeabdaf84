"""What is measured of stored vectors: their rows in batches, wherever they are kept.

Rows in columns, as a format or a client gives them, before it is known which of them are meant.

Damage and errors of the system as one sentence that names the place.

The libraries of stores: loaded when one is read, named when it is missing.

A sample of a store that is too large to be read: groups of rows that lie together, drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from embaudit.corpora.openers import os_failure
from embaudit.corpora.tables import report_damage
from embaudit.statistics import exact_share, grouped_half_width
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.template import Template
from embaudit.words.errors import CorpusError, UsageError, one_line

if TYPE_CHECKING:
    from embaudit.stores.search import OpenSearch, StoreSearch


# A job that wrote wrong rows wrote them one after another: of fewer groups, most would have none of them or all.
FEWEST_GROUPS = 200


@dataclass(frozen=True)
class DrawnGroups:
    """Which rows of a store were read.

    Attributes:
        rows, groups: of the whole store.
        starts: (G,) number of the first row of each group that was read, among the rows that were read.
        read: rows that were read.
    """

    rows: int
    groups: int
    starts: np.ndarray
    read: int

    def clusters(self, numbers: np.ndarray) -> np.ndarray:
        """The group of each row that was read, by its number among them."""
        return np.searchsorted(self.starts, numbers, side="right") - 1

    def share(self, numbers: np.ndarray) -> tuple[float, float, float]:
        """The share of all rows that have a property, from the numbers of those that were read and have it.

        The groups are the units that were drawn: the interval is a jackknife over them (``grouped_half_width``). If
        none or all of the rows have it, it is that of the share of groups, which is wider.
        """
        sizes = np.diff(np.append(self.starts, self.read))
        hits = np.bincount(self.clusters(numbers), minlength=len(sizes))
        share = hits.sum() / self.read
        if share in (0, 1):
            return share, *exact_share(round(share * len(sizes)), len(sizes))
        without = (hits.sum() - hits) / (self.read - sizes)
        half = grouped_half_width(share, without, sizes / self.read) or 0.0
        return share, max(share - half, 0.0), min(share + half, 1.0)


def drawn_groups(sizes: Sequence[Sequence[int]], least: int, seed: int) -> tuple[list[list[int]], DrawnGroups]:
    """Groups drawn without replacement, each as likely as any other, until they have so many rows.

    Args:
        sizes: rows of each group, by file.

    Returns:
        The groups to be read, by file, and what is known of them.
    """
    all_groups = [(file, group, rows) for file, own in enumerate(sizes) for group, rows in enumerate(own) if rows]
    order = np.random.default_rng(seed).permutation(len(all_groups))
    rows = np.array([all_groups[place][2] for place in order])
    count = max(int(np.searchsorted(np.cumsum(rows), least) + 1), FEWEST_GROUPS)
    taken = sorted(order[:count].tolist())
    chosen: list[list[int]] = [[] for _ in sizes]
    for place in taken:
        file, group, _ = all_groups[place]
        chosen[file].append(group)
    lengths = [all_groups[place][2] for place in taken]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return chosen, DrawnGroups(sum(map(sum, sizes)), len(all_groups), starts, sum(lengths))


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


FETCH = "Export it again, or fetch it again."
ONLY_READ = "Nothing was changed: it is only read."


@contextmanager
def reported(shown: str) -> Iterator[None]:
    """Errors of a reader as a CorpusError that names the file."""
    try:
        with report_damage(shown, FETCH):
            yield
    except FileNotFoundError as error:
        raise CorpusError(f"There is no file {shown}.", next_step="Check the path.") from error
    except OSError as error:
        raise os_failure(shown, error) from error


@contextmanager
def explained(shown: str, next_step: str, *errors: type[Exception], kept: str = ONLY_READ) -> Iterator[None]:
    """Errors of a store's own library, or of SQLite, as a CorpusError that names the store."""
    try:
        yield
    except errors as error:
        raise CorpusError(f"{shown} cannot be read: {one_line(error)}", kept=kept, next_step=next_step) from error


def needed(module: str, extra: str, shown: str) -> Any:
    """A library that a store is read by.

    Args:
        module: as it is imported.
        extra: of embaudit, that installs it.
        shown: the store, for the message.

    Raises:
        UsageError: if it is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{shown} is read by {error.name}, which is not installed.",
            next_step=f"pip install 'embaudit[{extra}]'",
        ) from error
    except ImportError as error:
        raise UsageError(
            f"{shown} is read by {module}, which cannot be imported: {error}.",
            next_step=f"Repair it: pip install --force-reinstall 'embaudit[{extra}]'",
        ) from error
