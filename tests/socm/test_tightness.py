"""Exact transport against the Gaussian bound, SIF weights, and the sample of pairs."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import clouds_from, random_texts, table_of

from embaudit.measures.socm.clouds import token_cloud
from embaudit.measures.socm.tightness import exact_w2_squared, pair_tightness, sample_pairs, sif_weights

pytest.importorskip("ot")


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_no_clouds_are_nearer_than_the_gaussians(seed: int) -> None:
    """Gelbrich: 4 (d_mu + d_sigma) <= W2^2."""
    clouds = {cloud.position: cloud for cloud in clouds_from(random_texts(seed, 4, 5))}
    weights = {position: np.ones(cloud.n) for position, cloud in clouds.items()}
    pairs = list(combinations(range(4), 2))
    for row in pair_tightness(clouds, weights, [i for i, _ in pairs], [j for _, j in pairs]):
        assert row.w2_squared is not None
        assert row.gaussian_w2_squared <= row.w2_squared + 1e-6 * max(1, row.w2_squared)
        # Weights that are all alike are plain mean pooling.
        assert (row.d_mu_sif, row.d_sigma_sif, row.socm_sif) == pytest.approx(
            (row.d_mu, row.d_sigma, row.socm), abs=1e-6
        )


def test_exact_transport_is_the_best_assignment() -> None:
    """Clouds of one size: the best of all permutations."""
    X, Y = (np.random.default_rng(k).normal(size=(5, 3)) + 1 for k in (1, 2))
    a, b = token_cloud(0, X), token_cloud(1, Y)
    X, Y = X / np.linalg.norm(X.mean(0)), Y / np.linalg.norm(Y.mean(0))
    best = min(np.square(X - Y[list(order)]).sum(1).mean() for order in permutations(range(5)))
    assert exact_w2_squared(a, b) == pytest.approx(best)


def test_a_cloud_is_at_no_distance_from_itself_and_points_are_gaussians() -> None:
    cloud = token_cloud(0, random_texts(3, 1, 6)[0])
    assert exact_w2_squared(cloud, cloud) == pytest.approx(0, abs=1e-12)
    one, other = token_cloud(0, np.array([[1.0, 0.0]])), token_cloud(1, np.array([[0.0, 3.0]]))
    assert exact_w2_squared(one, other) == pytest.approx(2)


def test_sif_weights_follow_the_counts_of_the_corpus() -> None:
    weights = sif_weights([[7, 1, 7], [7, 2]], a=0.1)
    # 7 is three of five tokens.
    assert weights[0] == pytest.approx([0.1 / 0.7, 0.1 / 0.3, 0.1 / 0.7])
    assert weights[1] == pytest.approx([0.1 / 0.7, 0.1 / 0.3])


def test_values_under_sif_are_those_of_the_weighted_clouds() -> None:
    texts = random_texts(5, 2, 6)
    clouds = {cloud.position: cloud for cloud in clouds_from(texts)}
    weights = {k: np.random.default_rng(k).random(len(X)) for k, X in enumerate(texts)}
    (row,) = pair_tightness(clouds, weights, [0], [1])
    expected = table_of([token_cloud(k, X, weights[k]) for k, X in enumerate(texts)])[0, 1]
    assert (row.d_mu_sif, row.d_sigma_sif, row.socm_sif) == pytest.approx(expected)


def test_a_weighted_mean_that_vanishes_leaves_sif_out() -> None:
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    clouds = {0: token_cloud(0, X), 1: token_cloud(1, np.ones((2, 2)))}
    (row,) = pair_tightness(clouds, {0: np.array([1.0, 1.0, 0.0]), 1: np.ones(2)}, [0], [1])
    assert (row.d_mu_sif, row.d_sigma_sif, row.socm_sif) == (None, None, None)
    assert row.socm > 0


@given(size=st.integers(2, 40), count=st.integers(1, 100), seed=st.integers(0, 100))
@settings(max_examples=60)
def test_the_sample_is_of_different_pairs(size: int, count: int, seed: int) -> None:
    positions = [3 * k + 1 for k in range(size)]
    first, second = sample_pairs(positions, count, seed)
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(pairs) == len(first) == min(count, size * (size - 1) // 2)
    assert pairs <= set(combinations(positions, 2))
    again = sample_pairs(list(reversed(positions)), count, seed)
    assert (again[0].tolist(), again[1].tolist()) == (first.tolist(), second.tolist())


def test_pair_numbers_far_out_are_still_pairs() -> None:
    size = 200_000
    first, second = sample_pairs(range(size), 2_000, 0)
    assert (first < second).all()
    assert first.min() >= 0
    assert second.max() < size
