"""What else would find a row that exact search loses: a piece of it, another way to ask, both without sticky tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from embaudit.comparisons.stored.encode import encode_rows, role_of_rows
from embaudit.comparisons.why.case import Case
from embaudit.comparisons.why.pieces import TextPiece, pieces_of, read_of
from embaudit.comparisons.why.ranked import RankedQueries, ranked
from embaudit.comparisons.why.readings import encoded, other_queries
from embaudit.comparisons.why.sticky import without_severe
from embaudit.functions.function import EmbeddingFunction
from embaudit.stores.store import Metric, Store


@dataclass(frozen=True)
class OtherMeans:
    """By what rows are sought.

    Attributes:
        k: results that are shown; who is among them needs no other way.
        vocabulary: words of the store.
        severe: ids of tokens that an audit found to be sticky.
    """

    k: int
    vocabulary: Set[str]
    severe: Collection[int] = ()


@dataclass(frozen=True)
class OtherWays:
    """What is tried for one case: queries (n, D) with the vectors that are ranked for each.

    Attributes:
        place: of the case.
        pieces: ranked for the query itself, the first one.
        said: how the others are asked.
        sticky: tokens without which the last one is asked; empty if there are none.
    """

    place: int
    pieces: list[TextPiece]
    said: list[str]
    sticky: tuple[str, ...]
    queries: list[np.ndarray]
    vectors: list[list[np.ndarray]]


def with_other_ways(
    store: Store,
    function: EmbeddingFunction,
    cases: Sequence[Case],
    queries: np.ndarray,
    metric: Metric,
    means: OtherMeans,
    progress: Callable[[int], None],
) -> list[Case]:
    """The cases with what would find those that exact search loses, in one more pass."""
    found = list(cases)
    plan = list(_planned(function, cases, queries, means))
    if not plan:
        return found
    asked = np.stack([query for one in plan for query in one.queries])
    ranks = ranked(store, asked, [own for one in plan for own in one.vectors], [metric], progress)
    start = 0
    for one in plan:
        found[one.place] = _told(found[one.place], function, one, ranks, metric, start)
        start += len(one.queries)
    return found


def has_vector(vector: np.ndarray) -> bool:
    return bool(np.isfinite(vector).all() and vector.any())


def _planned(
    function: EmbeddingFunction, cases: Sequence[Case], queries: np.ndarray, means: OtherMeans
) -> Iterator[OtherWays]:
    D = queries.shape[1]
    for place, case in enumerate(cases):
        if case.row is None or case.row.vector is None or case.rank is None or case.rank <= means.k:
            continue
        query, stored, text = queries[place], np.asarray(case.row.vector, np.float32), case.row.text or ""
        pieces = pieces_of(function, text)
        own = encode_rows(function, [piece.text for piece in pieces])[:, :D] if pieces else np.empty((0, D))
        kept = [number for number, vector in enumerate(own) if np.isfinite(vector).all()]
        others = other_queries(function, case.query, means.vocabulary)
        ways = encoded(function, others)[:, :D] if others else np.empty((0, D), np.float32)
        usable = [number for number, vector in enumerate(ways) if has_vector(vector)]
        asked = [query, *(ways[number] for number in usable)]
        vectors = [[own[number].astype(np.float32) for number in kept], *([stored] for _ in usable)]
        of_query = without_severe(function, case.query, "query", means.severe)
        of_text = without_severe(function, text, role_of_rows(function), means.severe)
        sticky: tuple[str, ...] = ()
        if of_query is not None or of_text is not None:
            sticky = tuple(
                dict.fromkeys(token for one in (of_query, of_text) if one is not None for token in one.tokens)
            )
            asked.append(query if of_query is None else of_query.vector[:D])
            vectors.append([stored if of_text is None else of_text.vector[:D]])
        said = [others[number].said for number in usable]
        yield OtherWays(place, [pieces[number] for number in kept], said, sticky, asked, vectors)


def _told(
    case: Case, function: EmbeddingFunction, one: OtherWays, ranks: RankedQueries, metric: Metric, start: int
) -> Case:
    """A case with the ranks of what was tried, of which the queries begin at ``start``."""

    def rank(query: int, place: int = 0) -> int:
        return ranks.rank(metric, start + query, place) or 0

    best = min(((rank(0, number), number) for number in range(len(one.pieces))), default=None)
    return replace(
        case,
        read=read_of(function, case.row.text) if case.row is not None and case.row.text else None,
        piece=None if best is None else one.pieces[best[1]],
        piece_rank=None if best is None else best[0],
        readings=tuple((said, rank(number)) for number, said in enumerate(one.said, 1)),
        sticky=one.sticky,
        sticky_rank=rank(len(one.queries) - 1) if one.sticky else None,
    )
