"""Who stands in whose results: occurrences, their skewness with an interval, and places of added texts.

Rankings are (askers, ≤ 10) places of documents, −1 where none is left, as ``embaudit.measures.collection.ranked`` gives
them. A similarity of −∞ is a document that is not found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np

from embaudit.corpora.downstream import unit_rows
from embaudit.corpora.downstream.retrieval import CUT as NEAREST
from embaudit.corpora.downstream.retrieval import NOT_RANKED, ranked
from embaudit.measures.collection import RESAMPLES
from embaudit.measures.geometry.figures import skewness, spectral_figures
from embaudit.measures.quality.scores import ResampledScore
from embaudit.statistics import MIN_UNITS, score_share, unit_weights
from embaudit.words.estimate import Estimate

SEED = 0
# Draws of random vectors, each as many as there are documents: their skewness differs by a tenth or so.
DRAWS = 5


def counts_of(ranking: np.ndarray, documents: int, weights: np.ndarray | None = None) -> np.ndarray:
    """(documents,) N: how many of the askers have each document in their row, each counted so many times."""
    is_there = ranking != NOT_RANKED
    times = None if weights is None else np.repeat(weights, is_there.sum(axis=1))
    return np.bincount(ranking[is_there], weights=times, minlength=documents)


def skew_of(ranking: np.ndarray, documents: int) -> ResampledScore | None:
    """Skewness of the occurrences, resampled over askers; None if it is undefined.

    A resample counts some askers twice, which spreads the counts: its deviation is used, and not its middle.
    """
    value = skewness(counts_of(ranking, documents)) if documents > 2 * NEAREST else None
    if value is None:
        return None
    weights = unit_weights(np.arange(len(ranking)), RESAMPLES, SEED)
    resampled = [skewness(counts_of(ranking, documents, of_one)) for of_one in weights]
    return ResampledScore(value, np.array([one for one in resampled if one is not None]))


def random_skew(vectors: np.ndarray, queries: int, seed: int = SEED) -> float | None:
    """Mean skewness of the occurrences of random vectors: as many, and as many queries, in as many dimensions as their
    effective rank. None if the (n, d) vectors differ by rounding alone.
    """
    rank = spectral_figures(vectors.astype(np.float64))["effective_rank"]
    if rank is None:
        return None
    found, documents = [], len(vectors)
    for draw in range(DRAWS):
        shape = documents + queries, max(2, round(rank))
        drawn = unit_rows(np.random.default_rng([seed, draw]).normal(size=shape))
        cosines = drawn @ drawn[:documents].T
        score = skewness(counts_of(asked_by_all(cosines[documents:], cosines[:documents]), documents))
        found += [] if score is None else [score]
    return float(np.mean(found)) if found else None


def asked_by_all(of_queries: np.ndarray, of_documents: np.ndarray, own: Sequence[frozenset[int]] = ()) -> np.ndarray:
    """(n + q, ≤ 10): the rankings of each document among the others, and of each query.

    Args:
        of_queries, of_documents: (q, n) and (n, n) similarities to the documents.
        own: of each query, the documents that are the query itself.
    """
    others = of_documents.astype(np.float64)
    np.fill_diagonal(others, -np.inf)
    return np.concatenate([ranked(others), ranked(of_queries, own)])


def best_relevant(similarities: np.ndarray, relevant: Sequence[Mapping[int, float]]) -> np.ndarray:
    """(q,) the highest similarity of each query to a document that is relevant for it."""
    rows = zip(similarities, relevant, strict=True)
    return np.array([row[list(grades)].max(initial=-np.inf) for row, grades in rows])


def is_above(similarities: np.ndarray, best: np.ndarray) -> np.ndarray:
    """(q, m) which of the (q, m) similarities exceed the (q,) best of a relevant document."""
    return similarities > best[:, None]


def places_taken(documents: np.ndarray, added: np.ndarray, own: Sequence[frozenset[int]] = ()) -> np.ndarray:
    """(q, m) which of m added texts are among each query's ten best of the (n) documents and these texts.

    Of equal similarities, documents come first.
    """
    ranking = ranked(np.concatenate([documents, added], axis=1), own)
    count = documents.shape[1]
    return np.stack([(ranking == count + place).any(axis=1) for place in range(added.shape[1])], axis=1)


def chance_of_meeting(documents: int, added: int) -> float:
    """1 − C(n, k)/C(n + m, k): the probability that one of m texts is among k drawn from n documents and these."""
    drawn = min(NEAREST, documents + added)
    return 1 - comb(documents, drawn) / comb(documents + added, drawn)


def share_of(hits: np.ndarray) -> Estimate:
    """Share of the (q,) that is true, with Wilson's interval; none below ten."""
    trials, count = len(hits), int(hits.sum())
    return Estimate(count / trials, *(score_share(count, trials) if trials >= MIN_UNITS else ()))
