"""Texts that are hard to scale: one token, no token, a mean of nothing, NaN, huge and tiny norms, other weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import clouds_from, random_texts, table_of

from embaudit.measures.socm.clouds import COSINE_BOUND, TRACE_BOUND, clouds_of, token_cloud
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
