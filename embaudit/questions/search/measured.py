"""What is measured of a store's search, part by part; a part that a store's error ends takes no other with it.

A search by tenant: under a filter on each value of a field, what it finds of the rows that the filter keeps.

An index that many share may find well on the whole and badly for one of them: a graph that is walked among everybody's
rows meets few of a small tenant's.

What an index that keeps codes in place of vectors loses, beside the function's own vectors of its texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.search.curve import MoreResults, more_results
from embaudit.questions.search.exact import METRICS, Exact, exact_search, scores_of
from embaudit.questions.search.recall import MARGIN, Queries, Results, Truth, asked, mean_share
from embaudit.questions.vectors.forms import as_rows_were_built, encode_rows
from embaudit.questions.vectors.profile import SomeRows
from embaudit.stores.search import Settings, StoreSearch
from embaudit.stores.store import Metric, RowBatch, Store
from embaudit.words.errors import CorpusError, UsageError
from embaudit.words.estimate import Estimate

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


# Values that are asked for one by one, the most frequent first, and queries for each.
MOST, QUERIES = 50, 50
TENANTS = Rule(
    "tenants",
    "recall@10 under the filter, by value of `--where-each`; the lowest",
    look_if="as `recall`, for any of them; or a query gets fewer than ten results where there are as many rows",
    problem_if="as `recall`, for any of them",
    reason="the mean over all hides a tenant whose rows are not found. `not measured` if the store cannot be asked "
    "with a filter",
)


@dataclass(frozen=True)
class Tenant:
    """One value of a field.

    Attributes:
        rows: that have it.
        searched: under a filter on it; None if the store could not be asked.
    """

    value: str
    rows: int
    searched: SearchedRows | None = None

    @property
    def recall(self) -> Estimate | None:
        return None if self.searched is None else self.searched.first.recall

    @property
    def fewer(self) -> int:
        """Queries with fewer than ten results, although there are as many rows."""
        return 0 if self.searched is None or self.rows < self.searched.first.truth.k else self.searched.first.fewer


@dataclass(frozen=True)
class TenantFilters:
    """A field by whose values a search is asked.

    Attributes:
        opened: the store with a filter on a value.
    """

    field: str
    opened: Callable[[str], Store]


def values_of(store: Store, field: str) -> tuple[list[tuple[str, int]], int]:
    """The most frequent values of a field with their rows, and how many values it has.

    Raises:
        UsageError: if rows have no such field.
    """
    names = list(store.fields)
    if field not in names:
        raise UsageError(
            f"Rows of {store.shown} have no field {field!r}.", next_step=f"They have: {', '.join(sorted(names))}."
        )
    counts: Counter[str] = Counter()
    kinds: set[type] = set()
    for batch in store.batches([field]):
        values = [value for value in batch.fields[field] if value is not None]
        counts.update(map(str, values))
        kinds.update(map(type, values))
    if len(kinds) > 1:
        raise UsageError(
            f"Values of {field!r} in {store.shown} are of several types: "
            f"{', '.join(sorted(kind.__name__ for kind in kinds))}.",
            kept="A store tells them apart, and a filter has one of them.",
            next_step="Bring them to one type, or name another field.",
        )
    return counts.most_common(MOST), len(counts)


def tenants_of(
    values: list[tuple[str, int]], opened: Callable[[str], Store], asked: Callable[[Store], SearchedRows | None]
) -> Iterator[Tenant]:
    """Ask under a filter on each value.

    Args:
        opened: the store with the filter on a value.
    """
    for value, rows in values:
        yield Tenant(value, rows, asked(opened(value)))


def tenant_findings(
    field: str, tenants: tuple[Tenant, ...], values: int, target: float, level_of: Callable[..., str]
) -> Iterator[Finding]:
    """The worst tenant, and how many are below what is wanted."""
    told = [(tenant.recall, tenant) for tenant in tenants if tenant.recall is not None]
    if not told:
        yield TENANTS.finding(
            "not measured",
            f"No value of {field} could be asked for.",
            "What a tenant finds is unknown.",
            "Leave out --where-each, or look whether the store filters by this field.",
        )
        return
    recall, worst = min(told, key=lambda one: one[0].known)
    below = sum(level_of(share, target) == "problem" for share, _ in told)
    fewer = max((tenant for tenant in tenants), key=lambda one: one.fewer)
    of = f"{len(told):,} of {values:,} values" if values > len(told) else f"{len(told):,} values"
    more = f"; {below:,} of them are below {target:.0%}" if below > 1 else ""
    short = (
        f" {fewer.fewer:,} queries get fewer than ten results for {fewer.value!r}, which has {fewer.rows:,} rows."
        if fewer.fewer
        else ""
    )
    level = level_of(recall, target)
    if level == "ok" and short:
        level = "look"
    yield TENANTS.finding(
        level,  # type: ignore[arg-type]
        f"By {field} ({of}), the search finds least for {worst.value!r}: {recall:.2f} of the ten nearest of its "
        f"{worst.rows:,} rows{more}.{short}",
        "The mean over all rows hides it.",
        "Have the store filter before it searches, or give small tenants an index of their own.",
        *recall,
    )


K = 10
ROWS = 1_000


def kept_by_codes(function: EmbeddingFunction, rows: SomeRows, metric: Metric) -> Estimate | None:
    """Of each row's ten nearest among these by the function's vectors, how many are so by what the index keeps.

    Rows ask for each other, (n, D) stored and encoded again. Among all rows of an index neighbours are closer to one
    another than among a sample, and codes lose more of them: this is the least that is lost. None if too few rows have
    a text, or the two have different dimensions.
    """
    some = rows.with_text
    some = some.at(np.arange(min(ROWS, len(some))))
    if len(some) <= 2 * K:
        return None
    own = encode_rows(as_rows_were_built(function, some, None), [text or "" for text in some.texts])
    usable = np.isfinite(own).all(axis=1)
    stored = np.asarray(some.vectors, np.float32)[usable]
    if own.shape[1] != stored.shape[1] or usable.sum() <= 2 * K:
        return None
    nearest = [_nearest(scores_of(metric, one, one)) for one in (own[usable].astype(np.float32), stored)]
    return mean_share(np.array([len(np.intersect1d(*both)) / K for both in zip(*nearest, strict=True)]))


def _nearest(scores: np.ndarray) -> np.ndarray:
    np.fill_diagonal(scores, -np.inf)
    return np.argpartition(-scores, K, axis=1)[:, :K]
