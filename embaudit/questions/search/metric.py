"""What a store ranks by, what its vectors and its function ask for, and what its scores are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.questions.search.exact import METRICS, Nearest
from embaudit.questions.search.recall import mean_share
from embaudit.stores.search import Hits
from embaudit.stores.store import Metric
from embaudit.words.estimate import Estimate

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
