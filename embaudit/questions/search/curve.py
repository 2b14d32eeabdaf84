"""What other settings of a query would give: recall beside time, each measured side by side with the present ones.

Wider settings of a query, from the least to the widest: the first that gives what the present ones do not.

What a store ranks by, what its vectors and its function ask for, and what its scores are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.questions.search.exact import METRICS, Nearest
from embaudit.questions.search.recall import WIDEST, Queries, Results, Truth, mean_share, widest_of, without_own
from embaudit.stores.search import Hits, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import Metric
from embaudit.words.estimate import Estimate

# Queries that settings are tried with, and beyond which recall a wider setting is not tried.
TRIED_WITH = 100
ENOUGH = 0.995
# Times the present time of a query.
SLOWEST = 200.0


@dataclass(frozen=True)
class TriedSetting:
    """One setting of a query.

    Attributes:
        settings: all dials.
        changed: those that differ from the present ones.
        recall: recall@k.
        times: its time for a query as a multiple of the present one's: the median of ratios, query by query.
    """

    settings: dict[str, int]
    changed: dict[str, int]
    recall: Estimate
    times: float

    @property
    def shown(self) -> str:
        return ", ".join(f"{name} {value:,}" for name, value in (self.changed or self.settings).items())


def tried_settings(
    search: StoreSearch,
    queries: Queries,
    truth: Truth,
    present: Settings,
    where: Where,
    target: float,
    progress: Callable[[int], None] = lambda done: None,
) -> list[TriedSetting]:
    """The present setting, then wider ones, dial by dial, until the target is passed; exact if none is enough."""
    some = queries.first(TRIED_WITH)
    found = [_tried(search, some, truth, present, dict(present), where)]
    best = dict(present)
    for dial in search.dials:
        here = SearchParameter(dial.name, present.get(dial.name, dial.present), dial.most)
        for value in here.wider():
            one = _tried(search, some, truth, present, {**best, dial.name: value}, where)
            progress(len(some))
            found.append(one)
            if one.recall.known >= ENOUGH or one.times > SLOWEST:
                break
        # Of equal ones the first, which looks at fewest rows.
        top = max(found, key=lambda one: one.recall.known)
        best = top.settings
        if top.recall.lowest >= target:
            break
    is_known = any(one.recall.known >= ENOUGH or (search.exact or {}).items() <= one.settings.items() for one in found)
    if search.exact is not None and not is_known:
        found.append(_tried(search, some, truth, present, {**present, **search.exact}, where))
    return found


def least_change(tried: list[TriedSetting], target: float) -> TriedSetting | None:
    """The fastest setting whose recall reaches the target; None if none does.

    Of one dial it is the least that is enough: a wider one looks at more rows, and is faster only by chance.
    """
    enough: dict[frozenset[str], TriedSetting] = {}
    for one in tried[1:]:
        if one.recall.known >= target:
            enough.setdefault(frozenset(one.changed), one)
    return min(enough.values(), key=lambda one: one.times, default=None)


def _tried(
    search: StoreSearch, queries: Queries, truth: Truth, present: Settings, settings: dict[str, int], where: Where
) -> TriedSetting:
    """Each query is asked at both settings, first at one and then at the other in turn."""
    recalls, ratios = [], []
    is_present = settings == dict(present)
    for place, (vector, own) in enumerate(zip(queries.vectors, queries.ids, strict=True)):
        took: dict[bool, float] = {}
        for is_new in (True,) if is_present else (True, False) if place % 2 else (False, True):
            start = time.perf_counter()
            hits = search.find(vector, truth.k + (own is not None), settings if is_new else present, where)
            took[is_new] = time.perf_counter() - start
            if is_new:
                recalls.append(truth.found(place, without_own(hits.ids, own)))
        ratios.append(took[True] / took.get(False, took[True]))
    recall = mean_share(np.array(recalls))
    changed = {name: value for name, value in settings.items() if present.get(name) != value}
    return TriedSetting(settings, changed, recall or Estimate(float("nan")), float(np.median(ratios)))


# Queries with too few results that are asked again.
AGAIN = 20


@dataclass(frozen=True)
class MoreResults:
    """What wider settings do for queries that get too few results.

    Attributes:
        shown: the first of them that gives the most queries all; empty if none gives any of them more.
        whole: of ``asked`` queries, how many get all of them then.
    """

    shown: str
    whole: int
    asked: int


def wider_settings(search: StoreSearch, present: Settings) -> Iterator[tuple[dict[str, int], str]]:
    """Settings with how they are called, the least first: every dial twice as far before any is four times.

    Settings by which a search looks at every row, and all dials at their widest, come last.
    """
    steps: list[tuple[int, dict[str, int], str]] = []
    for dial in search.dials:
        here = present.get(dial.name, dial.present)
        values = SearchParameter(dial.name, here, max(min(dial.most, WIDEST), here)).wider()
        steps += [(step, {**present, dial.name: value}, f"{dial.name} {value:,}") for step, value in enumerate(values)]
    yield from ((settings, said) for _, settings, said in sorted(steps, key=lambda one: one[0]))
    widest = {dial.name: max(min(dial.most, WIDEST), present.get(dial.name, 0)) for dial in search.dials}
    for most in ({**present, **widest}, widest_of(search, present)):
        changed = {name: value for name, value in most.items() if present.get(name) != value}
        if changed and not any(settings == most for _, settings, _ in steps):
            yield most, ", ".join(f"{name} {value:,}" for name, value in changed.items())


def more_results(
    search: StoreSearch, queries: Queries, outcome: Results, present: Settings, where: Where
) -> MoreResults | None:
    """Asks again for those that got fewer than there are; None if none did."""
    short = [
        place
        for place, (given, ids) in enumerate(zip(outcome.given, outcome.truth.ids, strict=True))
        if len(given) < len(ids)
    ][:AGAIN]
    if not short:
        return None
    best, gives = MoreResults("", 0, len(short)), sum(len(outcome.given[place]) for place in short)
    for settings, said in wider_settings(search, present):
        whole = given = 0
        for place in short:
            own = queries.ids[place]
            found = search.find(queries.vectors[place], outcome.truth.k + (own is not None), settings, where)
            count = len(without_own(found.ids, own)[: outcome.truth.k])
            given += count
            whole += count >= len(outcome.truth.ids[place])
        if given > gives:
            best, gives = MoreResults(said, whole, len(short)), given
        if whole == len(short):
            break
    return best


NAMES: Mapping[Metric, str] = {"cosine": "cosine", "dot": "inner product", "l2": "Euclidean distance"}
# By a function's word for its similarity.
DECLARED: Mapping[str, Metric] = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}
K = 10
# Of the largest: scores that differ by less are the same number.
SAME = 2e-3
# Of the largest inner product: scores that are closer are one number.
FLAT = 1e-5


@dataclass(frozen=True)
class RankedBy:
    """What metrics do on these vectors.

    Attributes:
        store: what the store ranks by.
        declared: what the function declares; empty if it declares nothing, or there is none.
        changed: of the first ten by the store's metric, the share that another metric does not have among its own.
        scores: what the store's scores are, as the end of "its scores are …"; empty if they are none of these.
        lowest, highest: of its scores in these results.
    """

    store: Metric
    declared: Metric
    changed: Mapping[Metric, Estimate]
    scores: str
    lowest: float
    highest: float


def ranked_by(
    store: Metric, declared: Metric, nearest: Mapping[Metric, Nearest], hits: Sequence[Hits]
) -> RankedBy | None:
    """Compare the first ten under each metric; None if the store's is not known."""
    if store not in nearest:
        return None
    own = nearest[store]
    changed = {}
    for metric in METRICS:
        if metric != store and metric in nearest:
            share = mean_share(_changed(own, nearest[metric]))
            if share is not None:
                changed[metric] = share
    scores = [float(one) for hit in hits for one in hit.scores]
    named = _scores(nearest, hits)
    return RankedBy(store, declared, changed, named, min(scores, default=np.nan), max(scores, default=np.nan))


def _changed(own: Nearest, other: Nearest) -> np.ndarray:
    """(Q,) share of the rows in the first ten that are not as near as the tenth under another metric."""
    reaching = other.reaching(K)
    shares = np.full(len(own.rows), np.nan)
    for query, rows in enumerate(own.rows[:, :K]):
        first = rows[rows >= 0]
        if len(first):
            near = set(other.rows[query][reaching[query]].tolist())
            shares[query] = 1 - sum(row in near for row in first.tolist()) / len(first)
    return shares


def _scores(nearest: Mapping[Metric, Nearest], hits: Sequence[Hits]) -> str:
    """The formula that gives a store's scores of rows whose exact ones are known."""
    pairs = {metric: _paired(one, hits) for metric, one in nearest.items()}
    products, given = pairs["dot"]
    if not len(given) or np.ptp(given) <= FLAT * max(np.abs(products).max(), np.abs(given).max()):
        # Of a row and itself, for one: no distance by any formula, but what rounding leaves of it.
        return ""
    forms = []
    if "cosine" in pairs:
        exact, given = pairs["cosine"]
        forms += [
            ("cosines", exact, given),
            ("1 − cosine", 1 - exact, given),
            ("(1 + cosine) / 2", (1 + exact) / 2, given),
        ]
    if "l2" in pairs:
        exact, given = pairs["l2"]
        distance = np.sqrt(np.maximum(-exact, 0))
        forms += [("squared Euclidean distances", -exact, given), ("Euclidean distances", distance, given)]
        forms += [("1 / (1 + Euclidean distance)", 1 / (1 + distance), given)]
    if "dot" in pairs:
        exact, given = pairs["dot"]
        forms += [("inner products", exact, given), ("1 − inner product", 1 - exact, given)]
        forms += [("negative inner products", -exact, given)]
    for name, exact, given in forms:
        if len(given) and np.abs(exact - given).max() <= SAME * max(float(np.abs(given).max()), 1e-6):
            return name
    return ""


def _paired(nearest: Nearest, hits: Sequence[Hits]) -> tuple[np.ndarray, np.ndarray]:
    """Exact scores and the store's of the rows that both have."""
    exact, given = [], []
    for query, hit in enumerate(hits):
        known = {str(one): score for one, score in zip(nearest.ids[query], nearest.scores[query], strict=True)}
        for one, score in zip(hit.ids, hit.scores, strict=True):
            if str(one) in known:
                exact.append(float(known[str(one)]))
                given.append(float(score))
    return np.array(exact), np.array(given)
