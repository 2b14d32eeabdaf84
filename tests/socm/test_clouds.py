"""Texts that are hard to scale: one token, no token, a mean of nothing, NaN, huge and tiny norms, other weights."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import clouds_from, random_texts, table_of

from embaudit.measures.socm.clouds import COSINE_BOUND, TRACE_BOUND, clouds_of, token_cloud
from embaudit.measures.socm.tightness import (
    common_component,
    exact_w2_squared,
    pair_tightness,
    sample_pairs,
    sif_weights,
)
from embaudit.words.errors import MeasureError, NotMeasurable


def test_a_cloud_is_scaled_and_centred() -> None:
    X = random_texts(0, 1, 6)[0]
    cloud = token_cloud(3, X)
    mean = X.mean(axis=0)
    norm = np.linalg.norm(mean)
    assert cloud.mean_norm == pytest.approx(norm)
    assert cloud.unit_mean == pytest.approx(mean / norm)
    assert cloud.centred == pytest.approx((X - mean) / norm)
    assert cloud.rows.T @ cloud.rows == pytest.approx(np.cov(X.T, bias=True) / norm**2)
    assert cloud.trace == pytest.approx(np.trace(np.cov(X.T, bias=True)) / norm**2)
    assert (cloud.position, cloud.n) == (3, len(X))


def test_the_models_own_numbers_are_kept_and_centred_in_float64() -> None:
    """Float32 differences of large numbers would lose the spread; the tokens themselves need no more than float32."""
    X = (1000 + np.random.default_rng(0).normal(size=(9, 5)) * 1e-3).astype(np.float32)
    cloud = token_cloud(0, X)
    assert cloud.tokens.dtype == np.float32
    exact = X.astype(np.float64)
    expected = np.square(exact - exact.mean(0)).sum() / 9 / np.square(exact.mean(0)).sum()
    assert cloud.trace == pytest.approx(expected, rel=1e-6)
    assert np.square(cloud.centred).sum() / 9 == pytest.approx(expected, rel=1e-6)


def test_a_one_token_text_has_no_spread() -> None:
    texts = [np.ones((1, 4), dtype=np.float32) / 3, np.random.default_rng(0).normal(size=(5, 4)) + 2]
    clouds = clouds_from(texts)
    assert clouds[0].trace == 0
    assert not clouds[0].centred.any()
    assert clouds[0].mean_cosine == pytest.approx(1)
    # Nothing overlaps with a point: all of the other text's spread is distance.
    assert table_of(clouds)[0, 1][1] == pytest.approx(clouds[1].trace / 4)


def test_two_one_token_texts_differ_in_their_means_only() -> None:
    clouds = clouds_from([np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])])
    assert table_of(clouds)[0, 1] == pytest.approx((0.5, 0, 0))


@pytest.mark.parametrize("X", [[[1.0, 0.0], [-1.0, 0.0]], [[0.0, 0.0]], [[1.0, 1e-7], [-1.0, 1e-7]]])
def test_a_mean_of_zero_is_undefined_and_named(X: list[list[float]]) -> None:
    with pytest.raises(NotMeasurable, match=r"text 7: the mean of its \d tokens? is zero"):
        token_cloud(7, np.array(X))


def test_undefined_texts_stand_beside_the_clouds() -> None:
    good, zero = np.ones((2, 3)), np.array([[1.0, 0, 0], [-1.0, 0, 0]])
    clouds, undefined = clouds_of([(4, good), (1, zero), (0, good)])
    assert [cloud.position for cloud in clouds] == [0, 4]
    assert [(text.position, text.tokens, text.mean_norm) for text in undefined] == [(1, 2, 0.0)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_an_error_and_no_undefined_text(bad: float) -> None:
    X = np.ones((3, 4), dtype=np.float32)
    X[1, 2] = bad
    with pytest.raises(MeasureError, match="text 5 contain NaN or infinity") as failure:
        clouds_of([(5, X)])
    assert not isinstance(failure.value, NotMeasurable)


def test_a_text_without_tokens_is_an_error_that_names_it() -> None:
    with pytest.raises(MeasureError, match="text 2 has no tokens"):
        clouds_of([(2, np.empty((0, 4), dtype=np.float32))])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_huge_and_tiny_norms_change_nothing(scale: float) -> None:
    """Squares of 1e30 overflow in float32, and squares of 1e-30 vanish."""
    texts = [X.astype(np.float32) for X in random_texts(1, 4, 5)]
    scaled = [(X.astype(np.float64) * scale).astype(np.float32) for X in texts]
    clouds = clouds_from(scaled)
    straight, found = table_of(clouds_from(texts)), table_of(clouds)
    for pair, values in straight.items():
        assert found[pair] == pytest.approx(values, abs=1e-6)
    assert clouds[0].mean_norm == pytest.approx(scale * np.linalg.norm(texts[0].mean(0)), rel=1e-5)
    assert clouds[0].mean_cosine == pytest.approx(token_cloud(0, texts[0]).mean_cosine, rel=1e-5)


def test_double_numbers_near_the_end_of_their_range() -> None:
    X = random_texts(1, 1, 5)[0]
    cloud = token_cloud(0, X * 1e300)
    assert cloud.trace == pytest.approx(token_cloud(0, X).trace)


def test_identical_texts_have_no_distance() -> None:
    X = np.random.default_rng(0).normal(size=(9, 4)) + 2
    ((_, values),) = table_of(clouds_from([X, X.copy()])).items()
    assert values == pytest.approx((0, 0, 0), abs=1e-7)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12))
@settings(max_examples=40)
def test_tokens_of_one_length_make_the_two_bounds_one(seed: int, n: int) -> None:
    """Appendix J: mean cosine = 1/(1 + tr Σ), so that 1/3 is tr Σ = 2."""
    X = np.random.default_rng(seed).normal(size=(n, 7)) + 0.4
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    cloud = token_cloud(0, X)
    assert cloud.mean_cosine == pytest.approx(1 / (1 + cloud.trace))
    if abs(cloud.trace - TRACE_BOUND) > 1e-9:
        assert (cloud.mean_cosine >= COSINE_BOUND) == (cloud.trace <= TRACE_BOUND)


def test_mean_cosine_is_the_mean_of_all_cosines() -> None:
    X = random_texts(3, 1, 6, longest=9)[0]
    cosines = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a in X for b in X]
    assert token_cloud(0, X).mean_cosine == pytest.approx(np.mean(cosines))


def test_a_token_without_direction_leaves_no_mean_cosine() -> None:
    assert token_cloud(0, np.array([[0.0, 0.0], [1.0, 0.0]])).mean_cosine is None


def test_weights_are_a_weighted_mean_and_covariance() -> None:
    X = random_texts(3, 1, 6, longest=9)[0]
    weights = np.random.default_rng(0).random(len(X))
    cloud = token_cloud(0, X, weights)
    mean = np.average(X, axis=0, weights=weights)
    covariance = np.cov(X.T, bias=True, aweights=weights) / np.square(mean).sum()
    assert cloud.mean_norm == pytest.approx(np.linalg.norm(mean))
    assert cloud.rows.T @ cloud.rows == pytest.approx(covariance)
    assert cloud.trace == pytest.approx(np.trace(covariance))
    # Equal weights, of any size, are none at all.
    assert token_cloud(0, X, np.full(len(X), 7.0)).trace == pytest.approx(token_cloud(0, X).trace)


# ---- exact transport against the Gaussian bound, SIF weights, and the sample of pairs ----


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
