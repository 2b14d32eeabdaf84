"""Does length decide before content does, where documents are ranked for queries (arXiv 2410.24200, §3)?

For a query q and a document r that is relevant to it, an irrelevant document x outranks r where cos(q, x) > cos(q, r);
a tie counts half. Of the irrelevant documents that are short, and of those that are long, a share outranks r:

    difference = share of the short ones − share of the long ones

Both are of the same q and r, so that hard queries cancel. Documents are short or long by the median of all. Short ones
may be about other things than long ones, hence the control: the same documents, all cut to one length, under the
labels that they had before. What is left there is not length. Needs numpy only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.downstream.split import units_of
from embaudit.downstream.task import unit_rows
from embaudit.intervals import mean_interval

RESAMPLES = 1_000
# Of the documents, nine in ten are as long as what all are cut to.
CUT_QUANTILE = 0.1


@dataclass(frozen=True)
class Outranked:
    """How often relevant documents of one length are outranked.

    Attributes:
        pairs: (query, relevant document).
        units: queries that share no relevant document.
        by_short, by_long: mean share of the short and of the long irrelevant documents that outrank.
        low, high: 95 % bootstrap over units; None for too few.
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
) -> list[Outranked]:
    """Of short and of long relevant documents; without those that there are none of.

    Args:
        documents, queries: (D, d) and (Q, d) vectors.
        relevant: of each query the places of its relevant documents.
        is_long: (D,) of each document.
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
        irrelevant[list(of_query)] = False
        others = [cosines[irrelevant & ~is_long], cosines[irrelevant & is_long]]
        if not all(map(len, others)):
            continue
        for place in of_query:
            short, long = ((own > cosines[place]).mean() + (own == cosines[place]).mean() / 2 for own in others)
            found[bool(is_long[place])].append((float(short), float(long), int(units[query])))
    return [_mean("long" if long else "short", rows, seed) for long, rows in found.items() if rows]


def _mean(relevant: str, rows: Sequence[tuple[float, float, int]], seed: int) -> Outranked:
    by_short, by_long, units = (np.array(column) for column in zip(*rows, strict=True))
    low, high = mean_interval(by_short - by_long, units, RESAMPLES, seed) or (None, None)
    return Outranked(
        relevant=relevant,
        pairs=len(rows),
        units=len(np.unique(units)),
        by_short=float(by_short.mean()),
        by_long=float(by_long.mean()),
        difference=float((by_short - by_long).mean()),
        low=low,
        high=high,
    )
