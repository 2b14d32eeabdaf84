"""Exact search in one pass is what a slow search of all pairs gives, whatever batches the rows come in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.questions.search.exact import METRICS, exact_search
from embaudit.stores.store import Metric, RowBatch, Store


def store_of_rows(rows: np.ndarray, at_once: int) -> Store:
    def batches(_: Sequence[str] = ()) -> Iterator[RowBatch]:
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            ids = [f"r{start + place}" for place in range(len(some))]
            yield RowBatch(start, len(some), {rows.shape[1]: (np.arange(len(some)), some)}, ids=ids)

    return Store("made up", {"vector": "v", "id": "id"}, "float32", batches, len(rows))


def slow_score(metric: Metric, query: np.ndarray, row: np.ndarray) -> float:
    query, row = query.astype(np.float64), row.astype(np.float64)
    if metric == "cosine":
        return float(query @ row / np.linalg.norm(query) / np.linalg.norm(row))
    return float(query @ row) if metric == "dot" else float(-np.sum((query - row) ** 2))


@pytest.mark.parametrize("metric", METRICS)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 40), at_once=st.integers(1, 17), k=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_nearest_rows_and_ranks_are_those_of_all_pairs(
    metric: Metric, seed: int, count: int, at_once: int, k: int
) -> None:
    generator = np.random.default_rng(seed)
    rows = (generator.normal(size=(count, 5)) * generator.uniform(0.5, 2, size=(count, 1))).astype(np.float32)
    queries = generator.normal(size=(3, 5)).astype(np.float32)
    scores = np.array([[slow_score(metric, query, row) for row in rows] for query in queries])
    bound = scores[:, :1]

    found = exact_search(store_of_rows(rows, at_once), queries, {metric: k}, {metric: bound})

    assert found.rows == count
    nearest, m = found.nearest[metric], min(k, count)
    order = np.argsort(-scores, axis=1)[:, :m]
    np.testing.assert_allclose(nearest.scores[:, :m], np.take_along_axis(scores, order, axis=1), atol=1e-5)
    np.testing.assert_array_equal(nearest.rows[:, :m], order)
    assert (nearest.rows[:, m:] == -1).all()
    assert nearest.ids[0, 0] == f"r{order[0, 0]}"
    np.testing.assert_array_equal(found.above[metric][:, 0], (scores > bound).sum(axis=1))


def test_rows_that_point_nowhere_are_left_out() -> None:
    rows = np.eye(4, dtype=np.float32)
    rows[1], rows[2, 0] = 0, np.nan

    found = exact_search(store_of_rows(rows, 3), np.ones((1, 4), np.float32), {"cosine": 4})

    assert found.rows == 2
    assert sorted(found.nearest["cosine"].rows[0].tolist()) == [-1, -1, 0, 3]


def test_rows_as_near_as_the_last_all_reach_it() -> None:
    rows = np.concatenate([np.tile([1.0, 0], (4, 1)), np.tile([0, 1.0], (6, 1))]).astype(np.float32)

    nearest = exact_search(store_of_rows(rows, 4), np.array([[1, 0.1]], np.float32), {"cosine": 10}).nearest["cosine"]

    assert nearest.reaching(2).sum() == 4
    assert nearest.reaching(5).sum() == 10
