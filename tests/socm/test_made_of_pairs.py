"""What is made of clouds and pairs: a plane, contrasts with random pairs, and other poolings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from random_clouds import by_definition, clouds_from, random_texts

from embaudit.checkpoint.pooling import pool
from embaudit.measures.socm.clouds import shared_plane, token_cloud
from embaudit.measures.socm.lengths import DISTANCES, contrasts, strangers
from embaudit.measures.socm.tightness import POOLINGS, cloud_angles, compare_poolings, pooled, shares_kept


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


# ---- contrasts ----


@given(queries=st.lists(st.integers(0, 8), max_size=40))
def test_every_pair_meets_a_stranger_and_every_passage_is_met_once(queries: list[int]) -> None:
    partner = strangers(queries)
    most = max((queries.count(one) for one in queries), default=0)
    if partner is None:
        assert 2 * most > len(queries) or not queries
        return
    assert sorted(partner) == list(range(len(queries)))
    assert all(queries[place] != queries[other] for place, other in enumerate(partner))


def test_differences_are_of_means_and_leave_out_queries() -> None:
    texts = random_texts(3, 17, 6)
    clouds = {cloud.position: cloud for cloud in clouds_from(texts)}
    first, second = [0, 1, 1, 2, 3, 4, 4, 3, 2, 0], list(range(5, 15))
    partner = strangers(first)
    assert partner is not None
    listed = np.array([by_definition(texts[i], texts[j]) for i, j in zip(first, second, strict=True)])
    random = np.array([by_definition(texts[i], texts[second[p]]) for i, p in zip(first, partner, strict=True)])
    found = {one.distance: one for one in contrasts(clouds, first, second, partner)}
    assert tuple(found) == DISTANCES
    for name, column in (("d_mu", 0), ("d_sigma", 1), ("socm", 2)):
        one, change = found[name], listed[:, column] - random[:, column]
        assert (one.pairs, one.queries) == (10, 5)
        assert one.listed_mean == pytest.approx(listed[:, column].mean(), abs=1e-6)
        assert one.difference == pytest.approx(change.mean(), abs=1e-6)
        without = np.array([change[np.array(first) != query].mean() for query in range(5)])
        error = np.sqrt(4 / 5 * np.square(without - without.mean()).sum())
        assert one.difference_high == pytest.approx(change.mean() + 1.96 * error, abs=1e-6)
        assert one.difference_low == pytest.approx(change.mean() - 1.96 * error, abs=1e-6)


def test_passages_that_answer_their_own_query_are_nearer() -> None:
    """Each passage is its query's cloud, moved a little."""
    queries = random_texts(4, 12, 8, longest=6, offset=0.8)
    texts = [*queries, *(X + 0.01 for X in queries)]
    clouds = {cloud.position: cloud for cloud in clouds_from(texts)}
    first, second = list(range(12)), list(range(12, 24))
    partner = strangers(first)
    assert partner is not None
    by_name = {one.distance: one for one in contrasts(clouds, first, second, partner)}
    for name in ("d_mu", "d_sigma"):
        assert by_name[name].difference_high is not None
        assert by_name[name].difference_high < 0


def test_a_list_of_one_query_has_no_strangers() -> None:
    assert strangers([]) is None
    assert strangers([1]) is None
    assert strangers([1, 1, 2]) is None
    assert strangers([1, 2]) == [1, 0]


# ---- poolings ----


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
