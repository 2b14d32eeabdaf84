"""A store's own search, asked as an application asks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from embaudit.stores.store import Metric, StoreColumn
from embaudit.words.errors import UsageError

# What a query may set, by the name that its client uses.
Settings: TypeAlias = Mapping[str, int]
Where: TypeAlias = Sequence[tuple[str, object]]


@dataclass(frozen=True)
class SearchParameter:
    """A setting of a query by which a search looks at more rows, and takes longer.

    Attributes:
        name: as its client calls it.
        present: what is in force where an application says nothing.
        most: beyond which it changes nothing.
    """

    name: str
    present: int
    most: int

    def wider(self) -> tuple[int, ...]:
        """Values above the present one, each twice the one before, up to the most."""
        values, value = [], self.present
        while value < self.most:
            value = min(max(2 * value, 1), self.most)
            values.append(value)
        return tuple(values)


@dataclass(frozen=True)
class Hits:
    """What a store gives for one query, nearest first.

    Attributes:
        ids: of the rows, as its id column has them.
        scores: (n,) as the store gives them.
    """

    ids: Sequence[object]
    scores: np.ndarray


class Find(Protocol):
    """Asks for the k rows nearest to a query (D,) float32, of those that a filter keeps."""

    def __call__(self, query: np.ndarray, k: int, settings: Settings, where: Where, /) -> Hits: ...


@dataclass(frozen=True)
class StoreSearch:
    """How a store is searched.

    Attributes:
        index: what answers: ``HNSW, M 16``, ``IVF of 128 lists`` …
        find: asks for the nearest rows of one query.
        metric: what it ranks by.
        is_exact: whether it looks at every row at its present settings.
        dials: what a query may set, in the order in which one would try them.
        exact: settings with which every row is looked at; None if a query cannot ask for that.
        takes_where: whether a query may be filtered.
        notes: what to know of it, a sentence each.
        is_quick_graph: whether it is a graph in this program's memory: rows may be unreachable, and thousands are asked
            for in seconds.
        anew: what has to be built anew where no setting of a query is enough, as advice.
    """

    index: str
    find: Find
    metric: Metric
    is_exact: bool = False
    dials: tuple[SearchParameter, ...] = ()
    exact: Settings | None = None
    takes_where: bool = False
    notes: tuple[str, ...] = ()
    is_quick_graph: bool = False
    anew: str = ""

    @property
    def present(self) -> dict[str, int]:
        """The dials as they are where an application says nothing."""
        return {dial.name: dial.present for dial in self.dials}

    def present_with(self, given: Settings, shown: str) -> dict[str, int]:
        """The dials as an application has them.

        Raises:
            UsageError: if it names another.
        """
        allowed = {*self.present, *(self.exact or {})}
        if unknown := sorted(set(given) - allowed):
            known = ", ".join(sorted(allowed)) or "there are none"
            raise UsageError(f"{unknown[0]} is no setting of a query of {shown}.", next_step=f"Settings: {known}.")
        return {**self.present, **given}


@dataclass(frozen=True)
class SearchedColumns:
    """Which columns of a table a search is of.

    Attributes:
        vector, id: by name.
        columns: all, with their first values.
    """

    vector: str
    id: str
    columns: Mapping[str, StoreColumn] = field(default_factory=dict)


OpenSearch: TypeAlias = Callable[[SearchedColumns], StoreSearch]


def typed(column: StoreColumn | None, name: str, value: str) -> object:
    """A filter's value, which was written as text, in the type that the column's values have."""
    some = column.some if column is not None else ()
    for known in some:
        if str(known) == value:
            return known
    kinds = {type(one) for one in some}
    if kinds == {bool}:
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise UsageError(f"{name} is True or False, not {value!r}.", next_step=f"--where {name}=True")
    try:
        return int(value) if kinds == {int} else float(value) if kinds and kinds <= {int, float} else value
    except ValueError as error:
        raise UsageError(
            f"{name} holds numbers, and {value!r} is none.", next_step=f"--where {name}={some[0]}"
        ) from error
