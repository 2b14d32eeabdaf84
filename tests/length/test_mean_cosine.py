"""The mean cosine and its jackknife, against loops over pairs."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.length.spans import mean_cosine
from embaudit.words.errors import MeasureError


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    dot = sum(a * b for a, b in zip(one, two, strict=True))
    return float(dot / sqrt(sum(a * a for a in one)) / sqrt(sum(b * b for b in two)))


def by_pairs(vectors: np.ndarray) -> float:
    pairs = [cosine(one, two) for one, two in combinations(vectors, 2)]
    return sum(pairs) / len(pairs)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), N=st.integers(4, 9), D=st.integers(1, 5), shift=st.floats(0, 10))
def test_mean_and_interval_are_those_of_the_pairs(seed: int, N: int, D: int, shift: float) -> None:
    vectors = np.random.default_rng(seed).normal(size=(N, D)) + shift
    found = mean_cosine(vectors)
    without = [by_pairs(np.delete(vectors, place, axis=0)) for place in range(N)]
    average = sum(without) / N
    error = sqrt((N - 1) / N * sum((value - average) ** 2 for value in without))
    assert found.texts == N
    assert found.mean == pytest.approx(by_pairs(vectors), abs=1e-12)
    np.testing.assert_allclose(found.without, without, atol=1e-12)
    if error <= 1e-12:
        # In one dimension every cosine is ±1, and every text may leave the same mean.
        assert (found.low, found.high) == (None, None)
        return
    assert found.high is not None
    assert found.low is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, abs=1e-9)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3))
def test_neither_order_nor_length_of_the_vectors_counts(seed: int, scale: float) -> None:
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(7, 4))
    lengths = scale * generator.uniform(0.5, 2, size=(7, 1))
    other = mean_cosine(generator.permutation(vectors * lengths))
    assert other.mean == pytest.approx(mean_cosine(vectors).mean, abs=1e-12)


def test_too_few_texts_have_no_mean_or_no_interval() -> None:
    vectors = np.eye(3)
    assert (mean_cosine(vectors[:0]).mean, mean_cosine(vectors[:1]).mean) == (None, None)
    three = mean_cosine(vectors)
    assert (three.texts, three.mean, three.low, three.high) == (3, 0.0, None, None)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_vector_without_a_direction_is_named(bad: float) -> None:
    vectors = np.eye(4)
    vectors[2] = bad
    with pytest.raises(MeasureError, match="Vector 2 of 4"):
        mean_cosine(vectors)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Independent vectors around a mean m with unit noise: the expected cosine is known from a large sample."""
    generator = np.random.default_rng(3)
    m = np.zeros(20)
    m[0] = 3
    truth = mean_cosine(generator.normal(size=(20_000, 20)) + m).mean
    assert truth is not None
    held = 0
    for _ in range(300):
        found = mean_cosine(generator.normal(size=(30, 20)) + m)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    assert 0.9 <= held / 300 <= 0.99
