"""Tokens in a plane: PCA without centring against an eigendecomposition, and what must not change."""

from __future__ import annotations

import numpy as np
import pytest

from embaudit.measures.socm.clouds import shared_plane, token_cloud


def texts(seed: int = 0, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(5, d)) + 2, generator.normal(size=(3, d)) + np.arange(d)


def test_the_axes_are_the_first_directions_from_the_origin() -> None:
    A, B = texts()
    plane = shared_plane(token_cloud(0, A), token_cloud(1, B))
    scaled = np.concatenate([A / np.linalg.norm(A.mean(0)), B / np.linalg.norm(B.mean(0))])
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    wanted = scaled @ vectors[:, [-1, -2]]
    found = np.concatenate([plane.first, plane.second])
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-10)
    assert plane.share == pytest.approx(values[-2:].sum() / values.sum())


def test_means_of_the_points_are_the_points_of_the_means() -> None:
    A, B = texts(1)
    plane = shared_plane(token_cloud(0, A), token_cloud(1, B))
    np.testing.assert_allclose(plane.first.mean(0), plane.first_mean, atol=1e-12)
    np.testing.assert_allclose(plane.second.mean(0), plane.second_mean, atol=1e-12)
    # Unit means: none leaves the unit disc.
    assert np.linalg.norm(plane.first_mean) <= 1 + 1e-12


def test_the_picture_does_not_depend_on_the_scale_or_turn_with_the_space() -> None:
    A, B = texts(2)
    rotation, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(6, 6)))
    one = shared_plane(token_cloud(0, A), token_cloud(1, B))
    other = shared_plane(token_cloud(0, 7 * A @ rotation), token_cloud(1, 0.1 * B @ rotation))
    for name in ("first", "second", "first_mean", "second_mean"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-10)


def test_two_one_token_texts_of_one_direction_lie_on_a_line() -> None:
    plane = shared_plane(token_cloud(0, np.array([[1.0, 0.0]])), token_cloud(1, np.array([[2.0, 0.0]])))
    np.testing.assert_allclose(plane.first, [[1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(plane.second, [[1.0, 0.0]], atol=1e-12)
    assert plane.share == pytest.approx(1)


def test_one_dimension_is_padded() -> None:
    plane = shared_plane(token_cloud(0, np.array([[2.0], [1.0]])), token_cloud(1, np.array([[-3.0]])))
    assert plane.first.shape == (2, 2)
    np.testing.assert_allclose(plane.first[:, 1], 0)
