"""Does document length affect the ranking for queries (arXiv 2410.24200, §3)?

For a query q and a relevant document r, an irrelevant document x outranks r if cos(q, x) > cos(q, r); a tie counts
half. A share of the short, and a share of the long irrelevant documents outranks r:

    difference = share of the short ones − share of the long ones

Both are for the same q and r, so that the difficulty of queries cancels. Documents are short or long by the median
length. Short ones may differ in topic from long ones, hence the control: the same documents, all cut to one length but
labelled short or long as before. A difference that remains there is not due to length.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.downstream.split import units_of
from embaudit.corpora.downstream.task import unit_rows
from embaudit.statistics.intervals import mean_interval
from embaudit.words.estimate import Estimate

RESAMPLES = 1_000
# Documents are cut to the length that nine in ten of them reach.
CUT_QUANTILE = 0.1


@dataclass(frozen=True)
class OutrankedShares:
    """How often relevant documents of one length are outranked.

    Attributes:
        pairs: number of (query, relevant document) pairs.
        units: number of groups of queries that share relevant documents.
        by_short, by_long: mean share of the short and of the long irrelevant documents that outrank.
        low, high: 95 % bootstrap over units; None if there are too few.
    """

    relevant: str
    pairs: int
    units: int
    by_short: float
    by_long: float
    difference: float
    low: float | None
    high: float | None


def outranked(
    documents: np.ndarray,
    queries: np.ndarray,
    relevant: Sequence[Mapping[int, float]],
    is_long: np.ndarray,
    seed: int,
    own: Sequence[Collection[int]] = (),
) -> list[OutrankedShares]:
    """Results for short and for long relevant documents, if there are any.

    Args:
        documents, queries: (D, d) and (Q, d) vectors.
        relevant: for each query, its relevant documents by index.
        is_long: (D,) bool.
        own: for each query, the documents that are the query itself: neither relevant nor irrelevant to it.
    """
    units = units_of(
        len(queries) + len(documents),
        [(query, len(queries) + place) for query, of_query in enumerate(relevant) for place in of_query],
    )
    targets = unit_rows(documents)
    found: dict[bool, list[tuple[float, float, int]]] = {False: [], True: []}
    for query, (vector, of_query) in enumerate(zip(unit_rows(queries), relevant, strict=True)):
        cosines = targets @ vector
        irrelevant = np.ones(len(documents), dtype=bool)
        irrelevant[[*of_query, *(own[query] if own else ())]] = False
        others = [cosines[irrelevant & ~is_long], cosines[irrelevant & is_long]]
        if not all(map(len, others)):
            continue
        for place in of_query:
            short, long = ((own > cosines[place]).mean() + (own == cosines[place]).mean() / 2 for own in others)
            found[bool(is_long[place])].append((float(short), float(long), int(units[query])))
    return [_mean("long" if long else "short", rows, seed) for long, rows in found.items() if rows]


def _mean(relevant: str, rows: Sequence[tuple[float, float, int]], seed: int) -> OutrankedShares:
    by_short, by_long, units = (np.array(column) for column in zip(*rows, strict=True))
    difference = float((by_short - by_long).mean())
    _, low, high = Estimate.holding(difference, mean_interval(by_short - by_long, units, RESAMPLES, seed))
    return OutrankedShares(
        relevant=relevant,
        pairs=len(rows),
        units=len(np.unique(units)),
        by_short=float(by_short.mean()),
        by_long=float(by_long.mean()),
        difference=difference,
        low=low,
        high=high,
    )
