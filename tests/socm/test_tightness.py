"""Exact transport against the Gaussian bound, SIF weights, and the sample of pairs."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import clouds_from, random_texts, table_of

from embaudit.measures.socm.clouds import token_cloud
from embaudit.measures.socm.tightness import (
    common_component,
    exact_w2_squared,
    pair_tightness,
    sample_pairs,
    sif_weights,
)

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


def test_sif_without_the_common_component_is_arora_s_full_method() -> None:
    """By hand: weighted means, the first right singular vector of them all, and its projection taken out."""
    texts = random_texts(8, 7, 6)
    clouds = {cloud.position: cloud for cloud in clouds_from(texts)}
    generator = np.random.default_rng(1)
    weights = {position: generator.uniform(0.1, 1, cloud.n) for position, cloud in clouds.items()}
    means = np.stack([weights[k] @ X / len(X) for k, X in enumerate(texts)])
    eigenvalues, vectors = np.linalg.eigh(means.T @ means)
    u = vectors[:, eigenvalues.argmax()]
    assert abs(common_component(clouds, weights) @ u) == pytest.approx(1)
    (row,) = pair_tightness(clouds, weights, [1], [4])
    pooled = [means[k] - u * (u @ means[k]) for k in (1, 4)]
    one, two = (v / np.linalg.norm(v) for v in pooled)
    assert row.d_mu_sif_removed == pytest.approx(np.square(one - two).sum() / 4, abs=1e-6)
    # What all texts have in common no longer makes them alike.
    assert row.d_mu_sif is not None
    assert row.d_mu_sif_removed > row.d_mu_sif
    # Tokens weighted and projected by hand, repeated so that equal weights say the same.
    removed = [texts[k] - np.outer(texts[k] @ u, u) for k in (1, 4)]
    shares = [weights[k] / weights[k].sum() for k in (1, 4)]
    roots = []
    for X, share, mean in zip(removed, shares, pooled, strict=True):
        scale = np.linalg.norm(share @ X)
        assert np.allclose(share @ X / scale, mean / np.linalg.norm(mean))
        roots.append(((X - share @ X) / scale) * np.sqrt(share)[:, None])
    nuclear = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    d_sigma = (np.square(roots[0]).sum() + np.square(roots[1]).sum() - 2 * nuclear) / 4
    assert row.d_sigma_sif_removed == pytest.approx(d_sigma, abs=1e-6)
