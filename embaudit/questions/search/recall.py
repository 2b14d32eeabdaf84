"""How much of what exact search finds a store's search finds, and where it finds less.

Rows that cannot be found: each of a sample is asked for by its own vector.

What a store is asked for: vectors of queries, or of rows that it holds, which leave their own row out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.search.exact import Nearest
from embaudit.questions.vectors.profile import SomeRows
from embaudit.statistics import exact_share, mean_with_interval
from embaudit.stores.search import Hits, Settings, StoreSearch, Where
from embaudit.words.estimate import Estimate

# Of a stored text that is asked for as a query: about as many words as people type.
WORDS = 12


@dataclass(frozen=True)
class Queries:
    """Queries of one search.

    Attributes:
        vectors: (Q, D) float32.
        rows: (Q,) number of the row that each one is; −1 for one that is none.
        ids: of these rows; None for a query that is none.
        what: as in "200 …".
    """

    vectors: np.ndarray
    rows: np.ndarray
    ids: tuple[object, ...]
    what: str

    def __len__(self) -> int:
        return len(self.vectors)

    def cut(self, dimension: int) -> Queries:
        """The first numbers of each, as an index of cut vectors is asked (Matryoshka)."""
        what = f"{self.what}, cut to {dimension:,} numbers"
        return Queries(np.ascontiguousarray(self.vectors[:, :dimension]), self.rows, self.ids, what)

    def first(self, most: int) -> Queries:
        return Queries(self.vectors[:most], self.rows[:most], self.ids[:most], self.what)


def of_rows(rows: SomeRows) -> Queries:
    """Rows that ask for their neighbours."""
    return Queries(np.asarray(rows.vectors, np.float32), rows.numbers, rows.ids, "stored vectors")


def of_texts(function: EmbeddingFunction, texts: Sequence[str], what: str) -> Queries:
    """Texts, encoded as queries; those without a vector are left out."""
    return of_vectors(function.encode(list(texts), "query").vectors, what)


def of_vectors(vectors: np.ndarray, what: str = "queries, given as vectors") -> Queries:
    """Those of (Q, D) that point somewhere."""
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    kept = np.asarray(vectors[usable], np.float32)
    return Queries(kept, np.full(len(kept), -1), (None,) * len(kept), what)


def beginnings(rows: SomeRows, most: int) -> list[str]:
    """The first words of stored texts, for want of queries."""
    texts = [" ".join((text or "").split()[:WORDS]) for text in rows.texts]
    return [text for text in dict.fromkeys(texts) if text][:most]


# Rows kept beyond the k nearest, so that those which are as near as the last are known.
MARGIN = 60
# A third of the neighbours is worth a line if it has so many.
LEAST = 30


def mean_share(values: np.ndarray) -> Estimate | None:
    """The mean over queries with its 95 % interval (Student's, within 0 and 1); None without any."""
    mean = mean_with_interval(np.asarray(values, dtype=np.float64))
    return None if mean.value is None else mean.within(0, 1)


@dataclass(frozen=True)
class Truth:
    """What exact search finds of each query, its own row left out.

    Attributes:
        k: rows that are asked for.
        ids, rows: of each query, the first k, nearest first.
        as_near: of each query, how often an id is among the rows that are as near as the k-th.
    """

    k: int
    ids: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[int, ...], ...]
    as_near: tuple[Counter[str], ...]

    @classmethod
    def of(cls, nearest: Nearest, queries: Queries, k: int, *, is_filtered: bool = False) -> Truth:
        """The nearest rows but a query's own, which among rows that a filter keeps has another number."""
        ids, rows, as_near = [], [], []
        for query, own in enumerate(queries.rows):
            is_other = nearest.rows[query] != own
            if is_filtered:
                is_other = np.array([str(one) != str(queries.ids[query]) for one in nearest.ids[query]])
            kept = np.flatnonzero((nearest.rows[query] >= 0) & is_other)
            first = kept[:k]
            bound = nearest.scores[query, first[-1]] - nearest.slack[query] if len(first) else np.inf
            near = kept[nearest.scores[query, kept] >= bound]
            ids.append(tuple(map(str, nearest.ids[query, first])))
            rows.append(tuple(nearest.rows[query, first].tolist()))
            as_near.append(Counter(map(str, nearest.ids[query, near])))
        return cls(k, tuple(ids), tuple(rows), tuple(as_near))

    def found(self, query: int, given: Sequence[str]) -> float:
        """Recall of a query: of its k nearest rows, or of as many as there are, how many are given."""
        wanted = len(self.ids[query])
        right = sum((Counter(given[: self.k]) & self.as_near[query]).values())
        return min(right, wanted) / wanted if wanted else np.nan


@dataclass(frozen=True)
class Results:
    """What a store gave for all queries at one number of results.

    Attributes:
        truth: what exact search finds.
        given: ids of each query's results, its own row left out.
        hits: as the store gave them.
    """

    truth: Truth
    given: tuple[tuple[str, ...], ...]
    hits: tuple[Hits, ...]

    @property
    def recalls(self) -> np.ndarray:
        """(Q,) recall@k of each query; NaN where no row is to be found."""
        return np.array([self.truth.found(query, given) for query, given in enumerate(self.given)])

    @property
    def recall(self) -> Estimate | None:
        return mean_share(self.recalls)

    @property
    def fewer(self) -> int:
        """Queries with fewer results than there are rows to be found, up to k."""
        return sum(len(given) < len(ids) for given, ids in zip(self.given, self.truth.ids, strict=True))

    @property
    def fewest(self) -> int:
        return min(map(len, self.given), default=0)

    def repeated(self, known: Mapping[str, int]) -> int:
        """Queries among whose results an id stands more often than rows have it."""
        return sum(
            any(count > known.get(one, 1) for one, count in Counter(given).items() if count > 1) for given in self.given
        )


def asked(search: StoreSearch, queries: Queries, truth: Truth, settings: Settings, where: Where) -> Results:
    """Ask a store for the k rows nearest to each query, as an application does."""
    given, hits = [], []
    for vector, own in zip(queries.vectors, queries.ids, strict=True):
        # One more, for a row that finds itself first.
        found = search.find(vector, truth.k + (own is not None), settings, where)
        given.append(without_own(found.ids, own)[: truth.k])
        hits.append(found)
    return Results(truth, tuple(given), tuple(hits))


def without_own(ids: Sequence[object], own: object) -> tuple[str, ...]:
    """The ids of results as texts, without the first that is the query's own row."""
    shown = list(map(str, ids))
    if own is not None and str(own) in shown:
        shown.remove(str(own))
    return tuple(shown)


@dataclass(frozen=True)
class Third:
    """A third of the neighbours of all queries, and how many of them are found.

    Attributes:
        by: what they were sorted by.
        which: which of them these are.
    """

    by: str
    which: str
    neighbours: int
    found: Estimate


def thirds(outcome: Results, rows: int, copies: np.ndarray | None, spread: np.ndarray) -> Iterator[Third]:
    """Recall by what may lower it; each way to sort with all of its parts, or not at all.

    Args:
        rows: of the store.
        copies: (rows,) whether a row has the same vector as another; None if that is not known.
        spread: (Q,) score of each query's k-th neighbour: the lower, the emptier is its part of the space.
    """
    queries, numbers, found = _by_neighbour(outcome)
    if not len(numbers):
        return
    low, high = np.quantile(spread, [1 / 3, 2 / 3])
    density = (spread[queries] > low).astype(int) + (spread[queries] > high)
    age = np.minimum(numbers * 3 // max(rows, 1), 2)
    ways: list[tuple[str, tuple[str, ...], np.ndarray]] = [
        ("density", ("queries where rows are sparse", "between", "queries where rows are dense"), density),
        ("age", ("rows of the first third of the store", "of the second", "of the last"), age),
    ]
    if copies is not None:
        ways.append(("copies", ("rows without a copy", "rows with copies"), copies[numbers].astype(int)))
    for by, names, part in ways:
        counts = np.bincount(part, minlength=len(names))
        if (counts < LEAST).any():
            continue
        for place, which in enumerate(names):
            chosen = part == place
            hits = np.bincount(queries[chosen], weights=found[chosen])
            totals = np.bincount(queries[chosen])
            share = mean_share(hits[totals > 0] / totals[totals > 0])
            if share is not None:
                yield Third(by, which, int(chosen.sum()), share)


def _by_neighbour(outcome: Results) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each neighbour that is to be found: its query, its row, and whether it is found."""
    queries, numbers, found = [], [], []
    for query, (ids, rows) in enumerate(zip(outcome.truth.ids, outcome.truth.rows, strict=True)):
        # In place of one that is not given, another may be that is as near.
        is_whole = outcome.truth.found(query, outcome.given[query]) == 1
        left = Counter(outcome.given[query])
        for one, row in zip(ids, rows, strict=True):
            queries.append(query)
            numbers.append(row)
            found.append(is_whole or left[one] > 0)
            left[one] -= 1
    return np.array(queries, np.int64), np.array(numbers, np.int64), np.array(found, np.float64)


# Results among which a row is looked for.
AMONG = 10
# A graph that is searched so widely finds whatever its links lead to; more takes minutes a row.
WIDEST = 4_096
# Of the rows that are not found, how many are asked for again at the widest settings.
AGAIN = 300


@dataclass(frozen=True)
class Reached:
    """Rows of a sample that were asked for by themselves.

    Attributes:
        asked: how many.
        missed: ids of those that are not among the first ten at the present settings.
        unreachable: of these, the ones that are not even at the widest.
        again: how many of those missed were asked for again.
        widest: the settings of that; empty if a query can set nothing.
    """

    asked: int
    missed: tuple[object, ...]
    unreachable: tuple[object, ...]
    again: int
    widest: dict[str, int]

    @property
    def share(self) -> tuple[float, float, float]:
        """Of the rows, those not found at the present settings, with the exact interval."""
        return len(self.missed) / self.asked, *exact_share(len(self.missed), self.asked)

    @property
    def lost_share(self) -> tuple[float, float, float]:
        """Of the rows, those that no setting finds; of those missed, as many as were asked for again are known."""
        scale = len(self.missed) / self.again if self.again else 0.0
        lost = round(len(self.unreachable) * scale)
        return lost / self.asked, *exact_share(lost, self.asked)


def reached(
    search: StoreSearch, rows: Queries, settings: Settings, where: Where, progress: Callable[[int], None]
) -> Reached:
    """Ask for each of these rows by its own vector; none of them may have ten rows that are nearer to it."""
    missed = []
    for place, (vector, own) in enumerate(zip(rows.vectors, rows.ids, strict=True)):
        if not _is_found(search, vector, own, settings, where):
            missed.append(place)
        progress(1)
    widest = widest_of(search, settings)
    again = missed[:AGAIN] if widest != dict(settings) else []
    lost = [place for place in again if not _is_found(search, rows.vectors[place], rows.ids[place], widest, where)]
    if not again:
        lost, again = missed, missed
    named = [tuple(rows.ids[place] for place in places) for places in (missed, lost)]
    return Reached(len(rows), named[0], named[1], len(again), widest if widest != dict(settings) else {})


def widest_of(search: StoreSearch, settings: Settings) -> dict[str, int]:
    """Settings at which a search looks at as much as it can, within reason."""
    if search.exact is not None:
        return {**settings, **search.exact}
    wide = {dial.name: max(min(dial.most, WIDEST), settings.get(dial.name, 0)) for dial in search.dials}
    return {**settings, **wide}


def _is_found(search: StoreSearch, vector: np.ndarray, own: object, settings: Settings, where: Where) -> bool:
    return str(own) in map(str, search.find(vector, AMONG, settings, where).ids)
