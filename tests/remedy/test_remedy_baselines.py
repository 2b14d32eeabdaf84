"""Pieces averaged, whitening and centring, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from embaudit.measures.tempscale.compare import average_pieces, fitted_baselines, pieces_of
from embaudit.remedies.mitigation.rows import Centring, Whitening
from embaudit.words.errors import NotMeasurable

FITTED = np.random.default_rng(1).normal(size=(200, 6)) @ np.random.default_rng(2).normal(size=(6, 6)) + 3.0
OTHERS = np.random.default_rng(3).normal(size=(5, 6))


def test_whitening_makes_the_covariance_of_what_it_was_fitted_on_the_identity() -> None:
    whitened = Whitening(FITTED)(FITTED)
    assert np.cov(whitened, rowvar=False) == pytest.approx(np.eye(6), abs=1e-10)
    assert whitened.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-12)


def test_whitening_is_mahalanobis_distance() -> None:
    """Whatever the rotation, products are those of (v - mean) C^-1 (w - mean)."""
    whitened, gap = Whitening(FITTED)(OTHERS), OTHERS - FITTED.mean(axis=0)
    expected = gap @ np.linalg.inv(np.cov(FITTED, rowvar=False)) @ gap.T
    assert whitened @ whitened.T == pytest.approx(expected, rel=1e-9)


def test_fewer_texts_than_dimensions_whiten_the_directions_that_they_have() -> None:
    whitening = Whitening(FITTED[:4])
    assert whitening.directions == 3
    assert np.cov(whitening(FITTED[:4]), rowvar=False) == pytest.approx(np.eye(3), abs=1e-9)
    assert np.abs(whitening(OTHERS)).max() < 1e6


def test_centring_leaves_a_mean_of_zero() -> None:
    assert Centring(FITTED)(FITTED).mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-12)
    assert Centring(FITTED)(OTHERS) == pytest.approx(OTHERS - FITTED.mean(axis=0), abs=1e-12)


@pytest.mark.parametrize("kind", [Centring, Whitening])
@pytest.mark.parametrize("size", [0, 1])
def test_one_vector_fits_nothing(kind: type, size: int) -> None:
    with pytest.raises(NotMeasurable, match="too few"):
        kind(FITTED[:size])


def test_vectors_that_are_all_alike_cannot_be_whitened() -> None:
    with pytest.raises(NotMeasurable, match="are equal"):
        Whitening(np.ones((9, 4)))
    assert set(fitted_baselines({"text": np.ones((9, 4))}, {"text": np.ones(9, dtype=bool)})) == {"centring"}


def test_a_baseline_never_sees_the_half_that_is_reported() -> None:
    mask = np.arange(200) < 100
    before = fitted_baselines({"document": FITTED, "query": OTHERS}, {"document": mask})
    changed = FITTED.copy()
    changed[~mask] *= 100
    after = fitted_baselines({"document": changed, "query": OTHERS}, {"document": mask})
    for name in ("whitening", "centring"):
        assert (after[name]["query"] == before[name]["query"]).all()
        assert (after[name]["document"][mask] == before[name]["document"][mask]).all()


def test_pieces_and_their_average() -> None:
    assert pieces_of([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert pieces_of([1, 2], 2) == [[1, 2]]
    assert pieces_of([], 2) == [[]]
    vectors = np.array([[1.0, 0], [0, 1], [4, 4], [0, 2]])
    averaged = average_pieces(vectors, np.array([0, 0, 1, 0]), np.array([2.0, 2, 5, 1]))
    assert averaged.tolist() == [[0.4, 0.8], [4, 4]]
