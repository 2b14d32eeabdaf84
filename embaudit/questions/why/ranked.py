"""Exact ranks: of a row for its query, of its pieces, and for the query asked otherwise; and who stands above."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.questions.search.exact import Exact, Progress, exact_search, scores_of
from embaudit.questions.search.recall import MARGIN
from embaudit.stores.store import Metric, RowBatch, Store

FIRST = 10


@dataclass(frozen=True)
class RankedQueries:
    """Ranks of vectors among a store's rows, each for its query.

    Attributes:
        exact: the pass.
        scores: by metric, (Q, M) of each query with each vector that is ranked for it; NaN for none.
    """

    exact: Exact
    scores: Mapping[Metric, np.ndarray]

    def rank(self, metric: Metric, query: int, place: int) -> int | None:
        """1 + the rows that are nearer, by more than rounding; None for none."""
        if not np.isfinite(self.scores[metric][query, place]):
            return None
        return int(self.exact.above[metric][query, place]) + 1


def ranked(
    store: Store,
    queries: np.ndarray,
    vectors: Sequence[Sequence[np.ndarray]],
    metrics: Sequence[Metric],
    progress: Progress,
    kept: int = 0,
) -> RankedQueries:
    """One pass over a store.

    Args:
        queries: (Q, D).
        vectors: of each query, those that are ranked for it, (D,) each.
        metrics: by which; the nearest rows are kept by the first.
        kept: how many nearest rows, at least.
    """
    most = max(map(len, vectors), default=0)
    scores = {metric: np.full((len(queries), most), np.nan) for metric in metrics}
    for query, own in enumerate(vectors):
        if len(own):
            for metric in metrics:
                scores[metric][query, : len(own)] = scores_of(metric, queries[[query]], np.stack(own))[0]
    bounds = {metric: np.where(np.isfinite(found), found, np.inf) for metric, found in scores.items()}
    k = {metrics[0]: max(kept, FIRST) + MARGIN} if kept else {}
    return RankedQueries(exact_search(store, queries, k, bounds, progress), scores)


def observed(store: Store, numbers: Collection[int], into: dict[int, np.ndarray]) -> Store:
    """The store, of which a pass keeps the vectors of these rows."""

    def batches(fields: Sequence[str] = ()) -> Iterator[RowBatch]:
        for batch in store.batches(fields):
            for number in numbers:
                if batch.start <= number < batch.start + batch.rows:
                    for places, vectors in batch.vectors.values():
                        for at in np.flatnonzero(places == number - batch.start):
                            into[number] = np.asarray(vectors[at], np.float64)
            yield batch

    return replace(store, batches=batches)
