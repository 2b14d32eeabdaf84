"""What is measured of a store's search, part by part; a part that a store's error ends takes no other with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from embaudit.questions.search.exact import METRICS, Exact, exact_search
from embaudit.questions.search.queries import Queries
from embaudit.questions.search.recall import MARGIN, Results, Truth, asked
from embaudit.questions.search.wider import MoreResults, more_results
from embaudit.stores.search import Settings, StoreSearch
from embaudit.stores.store import Metric, RowBatch, Store
from embaudit.words.errors import CorpusError

FIRST, MANY = 10, 100
Progress = Callable[[str, int, int | None], None]
Part = TypeVar("Part")


class Ids:
    """Which ids a store's rows have, remembered while they are read: by hash, 8 bytes each."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._known: tuple[np.ndarray, np.ndarray] | None = None

    def of(self, store: Store) -> Store:
        """The store, of which the next pass is remembered."""

        def batches(fields: Sequence[str] = ()) -> Iterator[RowBatch]:
            self._parts, self._known = [], None
            for batch in store.batches(fields):
                if batch.ids is not None:
                    self._parts.append(np.fromiter((hash(str(one)) for one in batch.ids), np.int64, batch.rows))
                yield batch

        return replace(store, batches=batches)

    def counts(self, ids: Sequence[str]) -> dict[str, int]:
        """How many rows have each of these."""
        if self._known is None:
            joined = np.concatenate(self._parts) if self._parts else np.empty(0, np.int64)
            self._known = np.unique(joined, return_counts=True)
        values, counts = self._known
        hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
        places = np.minimum(np.searchsorted(values, hashes), max(len(values) - 1, 0))
        if not len(values):
            return dict.fromkeys(ids, 0)
        found = np.where(values[places] == hashes, counts[places], 0)
        return dict(zip(ids, found.tolist(), strict=True))


@dataclass(frozen=True)
class SearchedRows:
    """A store's search beside exact search, for one set of queries and one filter.

    Attributes:
        where: the filter, as a person writes it; empty without one.
        rows: that are searched.
        exact: the pass over them.
        first, many: at ten results and at a hundred.
        repeated: queries among whose results a row stands twice.
        gone: ids in results that no row has, or that the filter should keep out.
        more: what wider settings do for queries that get too few results; None if none does.
    """

    where: str
    rows: int
    exact: Exact
    first: Results
    many: Results
    repeated: int
    gone: tuple[str, ...]
    more: MoreResults | None = None


def searched(
    store: Store,
    search: StoreSearch,
    queries: Queries,
    settings: Settings,
    progress: Progress,
    bounds: Mapping[Metric, np.ndarray] | None = None,
) -> SearchedRows:
    """Ask a store, and compare with every row.

    Args:
        bounds: as for ``exact_search``.
    """
    metric = search.metric
    ids = Ids()
    k = dict.fromkeys(METRICS, FIRST + MARGIN) | {metric: MANY + MARGIN}
    exact = exact_search(
        ids.of(store), queries.vectors, k, bounds, lambda rows: progress("exact search: rows", rows, store.rows)
    )
    outcomes = []
    for most in (FIRST, MANY):
        truth = Truth.of(exact.nearest[metric], queries, most, is_filtered=bool(store.where))
        outcomes.append(asked(search, queries, truth, settings, store.where))
        progress("queries asked", len(queries), None)
    given = list(dict.fromkeys(one for outcome in outcomes for ids_ in outcome.given for one in ids_))
    known = ids.counts(given)
    return SearchedRows(
        where=", ".join(f"{name}={value}" for name, value in store.where),
        rows=exact.rows,
        exact=exact,
        first=outcomes[0],
        many=outcomes[1],
        repeated=max(outcome.repeated(known) for outcome in outcomes),
        gone=tuple(one for one in given if not known[one]),
        more=next(filter(None, (more_results(search, queries, one, settings, store.where) for one in outcomes)), None),
    )


class KeptParts:
    """Runs the parts of a measurement; what a store's error ends is named, and the others are kept."""

    def __init__(self) -> None:
        self.failed: list[tuple[str, CorpusError]] = []

    def run(self, what: str, part: Callable[[], Part]) -> Part | None:
        try:
            return part()
        except CorpusError as error:
            self.failed.append((what, error))
            return None
