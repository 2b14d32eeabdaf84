"""Effects of length in an index of texts: on neighbours, on unrelated pairs, and on the ranking for queries.

Similarities are cosines of whole texts, read as far as the model has positions. A text's hubness (k-occurrence) is the
number of other texts that have it among their k nearest. Texts with different labels are unrelated; without labels, any
two texts are.

Of rankings (arXiv 2410.24200, §3): for a query q and a relevant document r, an irrelevant document x outranks r if
cos(q, x) > cos(q, r); a tie counts half. A share of the short, and a share of the long irrelevant documents outranks r:

    difference = share of the short ones − share of the long ones

Both are for the same q and r, so that the difficulty of queries cancels. Documents are short or long by the median
length. Short ones may differ in topic from long ones, hence the control: the same documents, all cut to one length but
labelled short or long as before. A difference that remains there is not due to length.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from embaudit.corpora.downstream import unit_rows, units_of
from embaudit.measures.length import NeighbourBias, OutrankedShares
from embaudit.measures.length.spans import unit_vectors
from embaudit.statistics import mean_interval
from embaudit.words.estimate import Estimate

MIN_TEXTS = 4
LONG_SHARE = 1 / 3
HIGH_QUANTILE = 0.95


@dataclass(frozen=True)
class LongPair:
    """Two unrelated long texts; ``first`` < ``second`` are their indices."""

    first: int
    second: int
    cosine: float


@dataclass(frozen=True)
class UnrelatedPairs:
    """Unrelated pairs in the longest third of the texts, compared with those in the shortest third.

    Attributes:
        worst: the pairs with the highest cosine.
        share_long_above: share of the long pairs above the 95th percentile of the short pairs; .05 if length has no
            effect.
    """

    pairs: int
    worst: list[LongPair]
    mean_long: float | None
    mean_short: float | None
    share_long_above: float | None


def neighbour_bias(
    vectors: np.ndarray, lengths: np.ndarray, labels: Sequence[str | None] | None, k: int
) -> NeighbourBias:
    """Neighbours, hubness and ranks by length.

    Args:
        vectors: (N, D).
        lengths: (N,) in tokens, before truncation.
        labels: labels of all texts, or None.
    """
    N = len(vectors)
    k = min(k, N - 1)
    if N < MIN_TEXTS:
        return NeighbourBias(
            neighbours=max(k, 0), **{one: None for one in NeighbourBias.own_columns if one != "neighbours"}
        )
    units = unit_vectors(vectors)
    similarity = units @ units.T
    np.fill_diagonal(similarity, -np.inf)
    order = np.argsort(-similarity, axis=1, kind="stable")
    nearest = order[:, :k]
    hubness = np.bincount(nearest.ravel(), minlength=N)
    rho, p = _spearman(lengths, hubness)
    short = lengths <= np.quantile(lengths, LONG_SHARE)
    codes = _codes(labels)
    mean_rank = _mean_ranks_among_unrelated(order, codes)
    ranked = np.isfinite(mean_rank)
    accuracy, wrong = (None, None) if codes is None else _votes(nearest, codes, lengths)
    return NeighbourBias(
        neighbours=k,
        hubness_spearman=rho,
        hubness_p=p,
        neighbour_length_ratio=float(lengths[nearest].mean() / lengths.mean()),
        short_neighbour_length_ratio=float(lengths[nearest[short]].mean() / lengths.mean()),
        rank_spearman=_spearman(lengths[ranked], mean_rank[ranked])[0],
        knn_accuracy=accuracy,
        wrong_length_ratio=wrong,
    )


def unrelated_pairs(
    vectors: np.ndarray, lengths: np.ndarray, labels: Sequence[str | None] | None, most: int
) -> UnrelatedPairs:
    """The unrelated pairs among the longest third of the texts, with the ``most`` highest-scoring ones."""
    if len(vectors) < MIN_TEXTS:
        return UnrelatedPairs(0, [], None, None, None)
    units, codes = unit_vectors(vectors), _codes(labels)
    long = np.flatnonzero(lengths >= np.quantile(lengths, 1 - LONG_SHARE))
    short = np.flatnonzero(lengths <= np.quantile(lengths, LONG_SHARE))
    (first, second, cosine), (*_, short_cosine) = (_pairs(units, codes, places) for places in (long, short))
    highest = np.argsort(-cosine, kind="stable")[:most]
    has_both = len(cosine) > 0 and len(short_cosine) > 0
    return UnrelatedPairs(
        len(cosine),
        [LongPair(int(first[i]), int(second[i]), float(cosine[i])) for i in highest],
        float(cosine.mean()) if len(cosine) else None,
        float(short_cosine.mean()) if len(short_cosine) else None,
        float((cosine > np.quantile(short_cosine, HIGH_QUANTILE)).mean()) if has_both else None,
    )


def _pairs(units: np.ndarray, codes: np.ndarray | None, places: np.ndarray) -> tuple[np.ndarray, ...]:
    """(first, second, cosine) of all unrelated pairs among the given texts."""
    chosen = units[places]
    one, two = np.triu_indices(len(places), 1)
    cosine = (chosen @ chosen.T)[one, two]
    first, second = places[one], places[two]
    if codes is not None:
        unrelated = codes[first] != codes[second]
        first, second, cosine = first[unrelated], second[unrelated], cosine[unrelated]
    return first, second, cosine


def _codes(labels: Sequence[str | None] | None) -> np.ndarray | None:
    """(N,) integer codes of the labels; None if a text has none, or all are the same."""
    if labels is None or any(label is None for label in labels) or len(set(labels)) < 2:
        return None
    return np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)[1]


def _mean_ranks_among_unrelated(order: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """(N,) each text's mean rank, from 0 (nearest) to 1, among the unrelated texts of every other text."""
    N = len(order)
    total, counted = np.zeros(N), np.zeros(N)
    for query in range(N):
        ranking = order[query, :-1]  # the last is the query itself
        if codes is not None:
            ranking = ranking[codes[ranking] != codes[query]]
        if len(ranking) > 1:
            total[ranking] += np.arange(len(ranking)) / (len(ranking) - 1)
            counted[ranking] += 1
    with np.errstate(invalid="ignore"):
        # The order of summation changes the last digits, but equal ranks must stay equal.
        return np.round(total / counted, 12)


def _votes(nearest: np.ndarray, codes: np.ndarray, lengths: np.ndarray) -> tuple[float, float | None]:
    """Accuracy of the neighbours' vote (ties go to the nearer), and how much longer the wrong neighbours are."""
    right = 0
    for query, neighbours in enumerate(nearest):
        votes = np.bincount(codes[neighbours])
        leading = np.flatnonzero(votes == votes.max())
        winner = next(code for code in codes[neighbours] if code in leading)
        right += int(winner == codes[query])
    same = codes[nearest] == codes[:, None]
    ratio = (
        float(lengths[nearest][~same].mean() / lengths[nearest][same].mean()) if same.any() and not same.all() else None
    )
    return right / len(nearest), ratio


def _spearman(one: np.ndarray, two: np.ndarray) -> tuple[float | None, float | None]:
    if len(one) < MIN_TEXTS or np.ptp(one) == 0 or np.ptp(two) == 0:
        return None, None
    found = scipy.stats.spearmanr(one, two)
    return float(found.statistic), float(found.pvalue)


RESAMPLES = 1_000
# Documents are cut to the length that nine in ten of them reach.
CUT_QUANTILE = 0.1


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


def _mean(relevant: Literal["short", "long"], rows: Sequence[tuple[float, float, int]], seed: int) -> OutrankedShares:
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
