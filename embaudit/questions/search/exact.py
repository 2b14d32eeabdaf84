"""Exact search over what a store holds: every row is compared with every query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from embaudit.stores.store import Metric, RowBatch, Store

METRICS: tuple[Metric, ...] = ("cosine", "dot", "l2")
# A row is as near as another if it is so within the rounding of float32 sums: by share of the largest product.
ROUNDING = 4e-6
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Nearest:
    """The K rows nearest to each of Q queries under one metric, nearest first.

    Attributes:
        rows: (Q, K) numbers of rows; −1 where there are fewer.
        ids: (Q, K) their ids, as objects.
        scores: (Q, K) the larger, the nearer: cosine, inner product, or −‖q − x‖²; −∞ where there are fewer rows.
        slack: (Q,) scores that differ by less are equal: the rounding of float32.
    """

    rows: np.ndarray
    ids: np.ndarray
    scores: np.ndarray
    slack: np.ndarray

    def reaching(self, k: int) -> np.ndarray:
        """(Q, K) whether a row is as near as the k-th: more than k are, if rows are equally near."""
        present = self.rows >= 0
        last = np.minimum(present.sum(axis=1), k) - 1
        bound = self.scores[np.arange(len(self.rows)), np.maximum(last, 0)] - self.slack
        return np.asarray(present & (self.scores >= bound[:, None]))


@dataclass(frozen=True)
class Exact:
    """What one pass over a store shows of queries.

    Attributes:
        nearest: by metric.
        above: by metric, (Q, M) how many rows are nearer than each of M given scores, by more than rounding.
        rows: how many rows were compared.
    """

    nearest: Mapping[Metric, Nearest]
    above: Mapping[Metric, np.ndarray]
    rows: int


def exact_search(
    store: Store,
    queries: np.ndarray,
    k: Mapping[Metric, int],
    bounds: Mapping[Metric, np.ndarray] | None = None,
    progress: Progress = lambda rows: None,
) -> Exact:
    """Compare each of (Q, D) queries with every row of D finite numbers that are not all 0.

    For a query q and a row x: cosine q·x / (‖q‖‖x‖), dot q·x, l2 −‖q − x‖² = 2 q·x − ‖q‖² − ‖x‖². Products are float32
    sums, lengths float64.

    Args:
        k: by metric, how many nearest rows are kept.
        bounds: by metric, (Q, M) scores of which it is counted how many rows are above.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    bounds = bounds or {}
    kept = {metric: _Kept(len(queries), most) for metric, most in k.items()}
    above = {metric: np.zeros(found.shape, np.int64) for metric, found in bounds.items()}
    lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    largest, total = 0.0, 0
    for batch in store.batches():
        places, rows = usable_rows(batch, queries.shape[1])
        if len(rows):
            norms = np.linalg.norm(rows.astype(np.float64), axis=1)
            largest, total = max(largest, float(norms.max())), total + len(rows)
            products = queries @ rows.T
            for metric in {**kept, **above}:
                scores = _scores(metric, products, lengths, norms)
                if metric in kept:
                    kept[metric].add(batch, places, scores)
                if metric in above:
                    slack = slack_of(metric, lengths, largest)[:, None]
                    for place, bound in enumerate(bounds[metric].T):
                        above[metric][:, place] += (scores > bound[:, None] + slack).sum(axis=1)
        progress(batch.rows)
    nearest = {metric: one.nearest(slack_of(metric, lengths, largest)) for metric, one in kept.items()}
    return Exact(nearest, above, total)


def usable_rows(batch: RowBatch, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Places (m,) and float32 vectors (m, D) of the rows of a batch that can be compared."""
    places, vectors = batch.vectors.get(dimension, (np.empty(0, np.int64), np.empty((0, dimension))))
    rows = np.asarray(vectors, dtype=np.float32)
    usable = np.isfinite(rows).all(axis=1) & rows.any(axis=1)
    return (places, rows) if usable.all() else (places[usable], rows[usable])


def scores_of(metric: Metric, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(Q, N) scores of (Q, D) queries and (N, D) rows; the larger, the nearer."""
    lengths, norms = (np.linalg.norm(one.astype(np.float64), axis=1) for one in (queries, rows))
    return _scores(metric, queries.astype(np.float32) @ rows.astype(np.float32).T, lengths, norms)


def slack_of(metric: Metric, lengths: np.ndarray, largest: float) -> np.ndarray:
    """(Q,) by how much two scores may differ that are equal: the rounding of products of these lengths."""
    if metric == "cosine":
        return np.full(len(lengths), ROUNDING)
    return np.asarray(ROUNDING * lengths * largest * (2 if metric == "l2" else 1))


def _scores(metric: Metric, products: np.ndarray, lengths: np.ndarray, norms: np.ndarray) -> np.ndarray:
    match metric:
        case "cosine":
            both = np.outer(lengths, norms)
            # A query without a vector, or of zeros, is near nothing.
            return np.divide(products, both, out=np.full(both.shape, np.nan), where=both > 0)
        case "l2":
            return np.asarray(2 * products - lengths[:, None] ** 2 - norms**2)
        case _:
            return products


class _Kept:
    """The nearest rows so far."""

    def __init__(self, queries: int, most: int) -> None:
        self._rows = np.full((queries, most), -1, dtype=np.int64)
        self._ids = np.full((queries, most), None, dtype=object)
        self._scores = np.full((queries, most), -np.inf)

    def add(self, batch: RowBatch, places: np.ndarray, scores: np.ndarray) -> None:
        most = self._scores.shape[1]
        for query in np.flatnonzero(scores.max(axis=1) > self._scores[:, -1]):
            new = np.flatnonzero(scores[query] > self._scores[query, -1])
            if len(new) > most:
                new = new[np.argpartition(-scores[query, new], most - 1)[:most]]
            joined = np.concatenate([self._scores[query], scores[query, new]])
            order = np.argsort(-joined, kind="stable")[:most]
            own = places[new]
            self._rows[query] = np.concatenate([self._rows[query], batch.start + own])[order]
            if batch.ids is not None:
                ids = np.empty(len(own), dtype=object)
                ids[:] = [batch.ids[place] for place in own]
                self._ids[query] = np.concatenate([self._ids[query], ids])[order]
            self._scores[query] = joined[order]

    def nearest(self, slack: np.ndarray) -> Nearest:
        return Nearest(self._rows, self._ids, self._scores, slack)
