"""What a search finds after a switch: in either index, with NEW's queries in OLD's index, and over a bridge.

A bridge is fitted on texts that it is not tried on. Texts are cut into two halves (a query, its relevant documents and
its own text stay together); each half is searched by itself, with a map that was fitted on the other half and on pairs
that share no text with it. All ways are tried in the same halves, so that they are paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from embaudit.corpora.downstream import in_report, unit_rows
from embaudit.corpora.downstream.retrieval import CUT, NOT_RANKED, evaluate
from embaudit.corpora.draw import content_order
from embaudit.measures.quality.passes import of_all
from embaudit.questions.switch.material import (
    MIN_DOCUMENTS,
    OldAndNew,
    SwitchedPairs,
    SwitchedSearch,
    search_of_vectors,
)
from embaudit.questions.switch.quality import MAPS, MOST_TEXTS, LinearMap, in_two_roles, mean_of, ratio_of
from embaudit.statistics import spearman
from embaudit.words.estimate import Estimate

SEED = 0
OLD, NEW, MIXED = "OLD alone", "NEW alone", "NEW's queries in OLD's index"
# Queries that are shown, and documents that are compared with each other to find those to show.
SHOWN, MOST_READ = 5, 1_000
# Fewer texts than this say nothing about a map of some hundred dimensions.
MIN_FIT = 100


@dataclass(frozen=True)
class Way:
    """One way to search, over all queries.

    Attributes:
        found: share of the ten documents that NEW alone finds.
        recall, ndcg: recall@10 and nDCG@10 of judged documents; None without judgements.
        kept: of NEW's nDCG@10 where there are judgements, else ``found``.
        fidelity: of a bridge, the mean cosine of a mapped query with OLD's vector of it; of NEW's queries as they are,
            that of these. None where nothing is compared.
    """

    name: str
    found: Estimate
    recall: Estimate | None
    ndcg: Estimate | None
    kept: Estimate
    fidelity: float | None = None


@dataclass(frozen=True)
class ReadQuery:
    """A query, or a text, whose nearest documents change most, to be read: the first three of each."""

    query: str
    overlap: float
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class SearchOutcome:
    """A search before and after the switch.

    Attributes:
        overlap: mean share of a query's first ten that are the same, in the whole index.
        agreement: mean Spearman's ρ of a query's candidates, the first ten of either.
        overlaps: (queries,) share of each.
        ways: in halves of the index, of ``documents`` each.
        bridge: the way that keeps most in OLD's index, by a map or (``MIXED``) without; None if no map was fitted.
        fitted_on: texts of each half's fit.
        penalties: λ of the least-squares maps.
    """

    name: str
    queries: int
    is_judged: bool
    overlap: Estimate
    agreement: Estimate
    overlaps: np.ndarray = field(repr=False)
    ways: dict[str, Way]
    documents: tuple[int, ...]
    bridge: str | None
    fitted_on: tuple[int, ...]
    penalties: tuple[float, ...]
    read: tuple[ReadQuery, ...]
    read_texts: tuple[ReadQuery, ...]
    asks_itself: bool = False

    @property
    def measure(self) -> str:
        """What ``kept`` is a share of."""
        return "nDCG@10" if self.is_judged else "first ten documents"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"overlaps": [round(float(one), 3) for one in self.overlaps]}


def first_ten(similarities: np.ndarray, can: np.ndarray) -> np.ndarray:
    """(queries, ≤ 10) places of the best documents that can be ranked, ties in their order; −1: none."""
    masked = np.where(can, similarities, -np.inf)
    ranking = np.argsort(-masked, axis=1, kind="stable")[:, :CUT]
    return np.where(np.isfinite(np.take_along_axis(masked, ranking, axis=1)), ranking, NOT_RANKED)


def shared(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(queries,) share of the documents of the second ranking that the first has."""
    return np.array(
        [
            len(set(one.tolist()) & set(two.tolist()) - {NOT_RANKED}) / max(int((two != NOT_RANKED).sum()), 1)
            for one, two in zip(first, second, strict=True)
        ]
    )


def measure_search(search: SwitchedSearch, pairs: Sequence[SwitchedPairs] = ()) -> SearchOutcome:
    """All of one search.

    Args:
        pairs: more texts that a bridge may be fitted on.
    """
    old, new = search.scores
    first = [first_ten(scores, search.rankable) for scores in (old, new)]
    overlaps = shared(*first)
    units = search.query_units
    ways, bridge, parts, penalties = _in_halves(search, pairs)
    return SearchOutcome(
        search.name,
        len(overlaps),
        search.is_judged,
        _mean(search, overlaps, units),
        _agreement(search, first, units),
        overlaps,
        ways,
        tuple(part.documents for part in parts),
        bridge,
        tuple(part.fitted_on for part in parts),
        penalties,
        tuple(_read(search, first, overlaps)),
        () if search.asks_itself else tuple(_read_texts(search)),
        search.asks_itself,
    )


def _mean(search: SwitchedSearch, values: np.ndarray, units: np.ndarray) -> Estimate:
    return in_two_roles(mean_of(values, units)) if search.asks_itself else mean_of(values, units)


def _agreement(search: SwitchedSearch, first: list[np.ndarray], units: np.ndarray) -> Estimate:
    found = np.full(len(units), np.nan)
    for query, (one, two) in enumerate(zip(*first, strict=True)):
        union = np.array(sorted({*one.tolist(), *two.tolist()} - {NOT_RANKED}))
        rho = spearman(search.scores[0][query, union], search.scores[1][query, union])
        found[query] = np.nan if rho is None else rho
    known = np.isfinite(found)
    return _mean(search, found[known], units[known])


def _read_texts(search: SwitchedSearch) -> Iterator[ReadQuery]:
    """Documents whose nearest other documents change most."""
    some = search.known.at(np.arange(min(len(search.known.old), MOST_READ)))
    texts = search.collection.documents[:MOST_READ]
    itself = search_of_vectors(some, texts=texts, similarities=search.similarities)
    first = [first_ten(scores, itself.rankable) for scores in itself.scores]
    yield from _read(itself, first, shared(*first))


def _read(search: SwitchedSearch, first: list[np.ndarray], overlaps: np.ndarray) -> Iterator[ReadQuery]:
    documents = search.collection.documents
    for query in np.argsort(overlaps, kind="stable")[:SHOWN]:
        old, new = (tuple(documents[place] for place in ranking[query][:3] if place != NOT_RANKED) for ranking in first)
        if overlaps[query] < 1:
            yield ReadQuery(search.collection.queries[query], float(overlaps[query]), old, new)


@dataclass(frozen=True)
class HeldOut:
    """What is searched by itself, and the maps for it, which were fitted on other texts."""

    queries: np.ndarray
    places: np.ndarray
    maps: dict[str, LinearMap]
    fitted_on: int

    @property
    def documents(self) -> int:
        return len(self.places)


def _in_halves(
    search: SwitchedSearch, pairs: Sequence[SwitchedPairs]
) -> tuple[dict[str, Way], str | None, list[HeldOut], tuple[float, ...]]:
    parts = _parts(search, pairs)
    names = [OLD, NEW, *([MIXED] if search.known.has_one_dimension else []), *parts[0].maps]
    count = len(search.collection.queries)
    outcomes = {name: {what: np.full(count, np.nan) for what in ("found", "recall", "ndcg")} for name in names}
    fidelities: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for part in parts:
        _search_part(search, part, outcomes, fidelities)
    fidelity = {name: float(np.concatenate(rows).mean()) for name, rows in fidelities.items() if rows}
    ways = {name: _way(name, outcomes, search, fidelity.get(name)) for name in names}
    # A map that is true to OLD's vectors finds what OLD finds, not what NEW finds, so fidelity does not choose.
    # A small change may be better left alone: no map is one of the maps.
    tried = [name for name in names if name in parts[0].maps or (parts[0].maps and name == MIXED)]
    bridge = max(tried, key=lambda name: ways[name].kept.value or 0.0, default=None)
    penalties = tuple(one.penalty for part in parts for one in part.maps.values() if one.penalty)
    return ways, bridge, parts, penalties


def _way(name: str, outcomes: dict[str, dict[str, np.ndarray]], search: SwitchedSearch, fidelity: float | None) -> Way:
    own, units = outcomes[name], search.query_units
    # That NEW finds what NEW finds needs no interval.
    found = Estimate(1.0) if name == NEW else _mean(search, own["found"], units)
    if not search.is_judged:
        return Way(name, found, None, None, found, fidelity)
    recall, ndcg = (mean_of(own[what], units) for what in ("recall", "ndcg"))
    kept = Estimate(1.0) if name == NEW else ratio_of(own["ndcg"], outcomes[NEW]["ndcg"], units)
    return Way(name, found, recall, ndcg, kept, fidelity)


def _search_part(
    search: SwitchedSearch,
    part: HeldOut,
    outcomes: dict[str, dict[str, np.ndarray]],
    fidelities: dict[str, list[np.ndarray]],
) -> None:
    """Fill in what the queries of a part find under every way."""
    queries, places = part.queries, part.places
    can = search.rankable[np.ix_(queries, places)]
    asked, known, similarity = search.asked.at(queries), search.known.old[places], search.similarities[0]
    scores = {name: some[np.ix_(queries, places)] for name, some in zip((OLD, NEW), search.scores, strict=True)}
    mapped = {name: one(rows_for(search.similarities[1], asked.new)) for name, one in part.maps.items()}
    if MIXED in outcomes:
        mapped[MIXED] = asked.new
    for name, rows in mapped.items():
        scores[name] = of_all(rows, known, similarity)
        fidelities[name].append(np.einsum("nd,nd->n", unit_rows(rows), unit_rows(asked.old)))
    best = first_ten(scores[NEW], can)
    new_place = {place: index for index, place in enumerate(places.tolist())}
    relevant = tuple(
        {new_place[place]: grade for place, grade in search.collection.relevant[query].items()} for query in queries
    )
    for name, some in scores.items():
        ranking = first_ten(some, can)
        outcomes[name]["found"][queries] = shared(ranking, best)
        if search.is_judged:
            judged = evaluate(relevant, ranking)
            outcomes[name]["recall"][queries], outcomes[name]["ndcg"][queries] = judged["recall_10"], judged["ndcg_10"]


def rows_for(similarity: str, rows: np.ndarray) -> np.ndarray:
    """The vectors that a map is fitted on: of length 1 where only their direction counts."""
    return unit_rows(rows) if similarity == "cosine" else np.asarray(rows, dtype=np.float64)


def _parts(search: SwitchedSearch, pairs: Sequence[SwitchedPairs]) -> list[HeldOut]:
    """Two halves with maps; the whole without any, if halves were too small."""
    queries, documents = search.collection.queries, search.collection.documents
    is_second = in_report([*queries, *documents], search.units, SEED)
    found = []
    for half in (is_second, ~is_second):
        asked, known = np.flatnonzero(half[: len(queries)]), np.flatnonzero(half[len(queries) :])
        old, new = _for_fit(search, pairs, half)
        if len(known) < MIN_DOCUMENTS or not len(asked) or len(old) < MIN_FIT:
            return [HeldOut(np.arange(len(queries)), np.arange(len(documents)), {}, 0)]
        found.append(HeldOut(asked, known, {name: fit(new, old) for name, fit in MAPS.items()}, len(old)))
    return found


def _for_fit(search: SwitchedSearch, pairs: Sequence[SwitchedPairs], half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, D) and (n, D′) vectors of at most 2 000 distinct texts outside a half, those of the index first."""
    queries, documents = search.collection.queries, search.collection.documents
    tried = {text for text, is_in in zip([*queries, *documents], half, strict=True) if is_in}
    sources: list[tuple[Sequence[str], OldAndNew]] = [(documents, search.known), (queries, search.asked)]
    for each in pairs:
        sources += [(each.pairs.firsts, each.firsts), (each.pairs.seconds, each.seconds)]
    seen = set(tried)
    old: list[np.ndarray] = []
    new: list[np.ndarray] = []
    for texts, both in sources:
        fresh = [place for place in content_order(texts, SEED) if texts[place] not in seen]
        fresh = list({texts[place]: place for place in fresh}.values())[: MOST_TEXTS - sum(len(rows) for rows in old)]
        seen |= {texts[place] for place in fresh}
        old.append(rows_for(search.similarities[0], both.old[fresh]))
        new.append(rows_for(search.similarities[1], both.new[fresh]))
    return np.concatenate(old), np.concatenate(new)
