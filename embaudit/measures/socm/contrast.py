"""Listed pairs (queries with hard negatives) compared with random pairs of the same texts, as a paired difference.

Every query is paired with its own passage, and with another query's. The latter are a permutation of the former, so
both arms have the same queries and passages: lengths and tr Σ are the same, only the pairing differs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.measures.socm.clouds import TokenCloud
from embaudit.measures.socm.pairs import given_pairs
from embaudit.measures.socm.summary import jackknife_of_pairs
from embaudit.words.estimate import Estimate

DISTANCES = ("socm", "d_mu", "d_sigma")


@dataclass(frozen=True)
class Contrast:
    """One distance, averaged over the listed and over the random pairs.

    Attributes:
        difference: listed − random; its interval is a jackknife over queries.
    """

    distance: str
    pairs: int
    queries: int
    listed_mean: float
    random_mean: float
    difference: float
    difference_low: float | None
    difference_high: float | None


def strangers(queries: Sequence[Hashable]) -> list[int] | None:
    """For each pair, the index of another query's pair, each index once; None if one query has over half of the pairs.

    Pairs are grouped by query and shifted by the size of the largest group. The given order of queries should be
    random.
    """
    rows: dict[Hashable, list[int]] = {}
    for place, query in enumerate(queries):
        rows.setdefault(query, []).append(place)
    shift = max(map(len, rows.values()), default=0)
    if not rows or 2 * shift > len(queries):
        return None
    ordered = [place for row in rows.values() for place in row]
    partner = [0] * len(queries)
    for k, place in enumerate(ordered):
        partner[place] = ordered[(k + shift) % len(ordered)]
    return partner


def contrasts(
    clouds: Mapping[int, TokenCloud], first: Sequence[int], second: Sequence[int], partner: Sequence[int]
) -> list[Contrast]:
    """SOCM, d_μ and d_Σ of the pairs (first, second), compared with (first, second of the partner).

    Args:
        clouds: by text number.
        first, second: (k,) numbers of queries and passages.
        partner: (k,) indices of other pairs (``strangers``).
    """
    listed = given_pairs(clouds, first, second)
    random = given_pairs(clouds, first, [second[place] for place in partner])
    _, places = np.unique(np.asarray(first), return_inverse=True)
    counts = np.bincount(places)
    found = []
    for name in DISTANCES:
        own, other = getattr(listed, name), getattr(random, name)
        change = own - other
        mean = float(change.mean())
        _, low, high = Estimate.around(
            mean, jackknife_of_pairs(np.bincount(places, weights=change), counts, float(change.sum()), len(change))
        )
        found.append(
            Contrast(
                distance=name,
                pairs=len(change),
                queries=len(counts),
                listed_mean=float(own.mean()),
                random_mean=float(other.mean()),
                difference=mean,
                difference_low=low,
                difference_high=high,
            )
        )
    return found
