"""Other poolings beside the mean: against the vectors that are served, least squares by search, and pairs by loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from random_clouds import by_definition, clouds_from, random_texts

from embaudit.checkpoint.pooling import pool
from embaudit.measures.socm.tightness import POOLINGS, cloud_angles, compare_poolings, pooled, shares_kept


def by_roots(first: np.ndarray, second: np.ndarray) -> float:
    """The angle between two texts' tokens, at their own lengths, by matrix roots."""
    moments = []
    for X in (first.astype(np.float64), second.astype(np.float64)):
        moments.append((X.mean(axis=0), np.atleast_2d(np.cov(X.T, bias=True)), np.square(X).sum(axis=1).mean()))
    (a, A, square), (b, B, other) = moments
    return float(1 - (a @ b + np.trace(root(root(A) @ B @ root(A)))) / np.sqrt(square * other))


def root(A: np.ndarray) -> np.ndarray:
    """The square root of a covariance."""
    values, vectors = np.linalg.eigh(A)
    found: np.ndarray = vectors * np.sqrt(values.clip(min=0)) @ vectors.T
    return found


@given(seed=st.integers(0, 50), tokens=st.integers(1, 9), behind=st.integers(0, 3))
def test_vectors_are_those_that_a_checkpoint_of_that_pooling_serves(seed: int, tokens: int, behind: int) -> None:
    import torch

    X = np.random.default_rng(seed).normal(size=(behind + tokens, 5))
    served = pool(torch.from_numpy(X)[None], torch.ones(1, len(X), dtype=torch.int64), POOLINGS, unpooled=behind)
    assert np.allclose(pooled(X[behind:], behind).ravel(), served[0].numpy(), atol=1e-12)


@given(seed=st.integers(0, 50), tokens=st.integers(1, 6))
def test_what_is_kept_is_what_the_best_multiple_leaves(seed: int, tokens: int) -> None:
    X = np.random.default_rng(seed).normal(loc=0.3, size=(tokens, 4))
    vectors = pooled(X)
    for share, p in zip(shares_kept(X, vectors), vectors, strict=True):
        best = scipy.optimize.minimize_scalar(lambda c, p=p: np.square(X - c * p).sum(axis=1).mean())
        assert share == pytest.approx(1 - best.fun / np.square(X).sum(axis=1).mean(), abs=1e-7)
    (cloud,) = clouds_from([X.astype(np.float32)])
    assert shares_kept(X, vectors)[0] == pytest.approx(1 / (1 + cloud.trace), rel=1e-4)
    assert shares_kept(X, vectors)[0] >= shares_kept(X, vectors).max() - 1e-12


def test_correlations_and_their_intervals_by_loops() -> None:
    texts = random_texts(5, 30, 6, offset=0.5)
    pairs = list(combinations(range(len(texts)), 2))
    angles = np.array([by_roots(texts[i], texts[j]) for i, j in pairs])
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    d_mu, d_sigma = np.array([by_definition(texts[i], texts[j])[:2] for i, j in pairs]).T
    traces = np.array([cloud.trace for cloud in clouds_from(texts)])
    assert np.allclose(cloud_angles(d_mu, d_sigma, traces[first], traces[second]), angles, atol=1e-6)
    found = compare_poolings(texts, first, second, angles)
    assert [one.pooling for one in found] == list(POOLINGS)
    for place, one in enumerate(found):
        assert (one.texts, one.pairs) == (30, 435)
        vectors = [pooled(X)[place] for X in texts]
        away = {pair: scipy.spatial.distance.cosine(vectors[pair[0]], vectors[pair[1]]) for pair in pairs}

        def rho(left_out: set[int], away: dict[tuple[int, int], float] = away) -> float:
            kept = [k for k, pair in enumerate(pairs) if not left_out & set(pair)]
            return float(scipy.stats.spearmanr([away[pairs[k]] for k in kept], angles[kept]).statistic)

        assert one.correlation == pytest.approx(rho(set()), abs=1e-9)
        without = np.array([rho({text for text in range(30) if text % 25 == group}) for group in range(25)])
        half = 1.96 * np.sqrt(24 / 25 * np.square(without - without.mean()).sum())
        assert one.correlation_high == pytest.approx(min(rho(set()) + half, 1), abs=1e-9)
        assert one.correlation_low == pytest.approx(rho(set()) - half, abs=1e-9)
        cosines = [
            1 - scipy.spatial.distance.cosine(own, X.mean(axis=0)) for own, X in zip(vectors, texts, strict=True)
        ]
        assert one.cosine_to_mean == pytest.approx(np.mean(cosines), abs=1e-9)
        kept = [shares_kept(X, pooled(X))[place] for X in texts]
        assert one.kept == pytest.approx(np.mean(kept))
        assert one.kept_low == pytest.approx(np.mean(kept) - scipy.stats.sem(kept) * scipy.stats.t.ppf(0.975, 29))


def test_texts_of_one_token_are_one_vector_under_every_pooling() -> None:
    texts = [X[:1] for X in random_texts(6, 12, 5)]
    pairs = list(combinations(range(12), 2))
    angles = np.array([by_roots(texts[i], texts[j]) for i, j in pairs])
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    for one in compare_poolings(texts, first, second, angles):
        assert one.kept == pytest.approx(1)
        assert one.cosine_to_mean == pytest.approx(1)
        assert one.correlation == pytest.approx(1)


def test_few_texts_have_no_interval_and_equal_pairs_no_correlation() -> None:
    texts = random_texts(7, 3, 5)
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    for one in compare_poolings(texts, first, second, np.array([0.1, 0.2, 0.3])):
        assert one.correlation is not None
        assert one.correlation_low is None
    assert all(one.correlation is None for one in compare_poolings(texts, first, second, np.full(3, 0.2)))
