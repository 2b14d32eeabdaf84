"""Neighbours, ranks and unrelated pairs against length, by loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from embaudit.measures.length.bias import neighbour_bias, unrelated_pairs

N, K = 15, 3
GENERATOR = np.random.default_rng(4)
VECTORS = GENERATOR.normal(size=(N, 6)) + 0.5
LENGTHS = GENERATOR.permutation(np.arange(10, 10 + 20 * N, 20))
LABELS = ["river", "iron", "law"] * 5


def cosine(i: int, j: int) -> float:
    return float(VECTORS[i] @ VECTORS[j] / np.linalg.norm(VECTORS[i]) / np.linalg.norm(VECTORS[j]))


def ranking(query: int) -> list[int]:
    return sorted((j for j in range(N) if j != query), key=lambda j: -cosine(query, j))


@pytest.mark.parametrize("labels", [LABELS, None])
def test_neighbours_and_ranks_by_loops(labels: list[str | None] | None) -> None:
    found = neighbour_bias(VECTORS, LENGTHS, labels, K)
    hubness, ranks = np.zeros(N), [[] for _ in range(N)]
    right = 0
    near: list[int] = []
    same: list[int] = []
    other: list[int] = []
    for query in range(N):
        nearest = ranking(query)[:K]
        for j in nearest:
            hubness[j] += 1
            near.append(LENGTHS[j])
            (same if LABELS[j] == LABELS[query] else other).append(LENGTHS[j])
        votes = [LABELS[j] for j in nearest]
        right += max(votes, key=votes.count) == LABELS[query]  # of a tie, the first and so the nearer one
        unrelated = [j for j in ranking(query) if labels is None or LABELS[j] != LABELS[query]]
        for rank, j in enumerate(unrelated):
            ranks[j].append(rank / (len(unrelated) - 1))
    assert found.k == K
    assert found.hubness_spearman == pytest.approx(spearmanr(LENGTHS, hubness).statistic)
    assert found.neighbour_length_ratio == pytest.approx(np.mean(near) / np.mean(LENGTHS))
    assert found.rank_spearman == pytest.approx(
        spearmanr(LENGTHS, [round(float(np.mean(of)), 12) for of in ranks]).statistic
    )
    if labels is None:
        assert found.accuracy is None
        assert found.wrong_length_ratio is None
    else:
        assert found.accuracy == pytest.approx(right / N)
        assert found.wrong_length_ratio == pytest.approx(np.mean(other) / np.mean(same))


def test_long_texts_in_the_middle_of_everything_are_hubs_that_rank_high() -> None:
    """Texts of a random direction, the longer the nearer to their common mean."""
    generator = np.random.default_rng(0)
    lengths = np.arange(1, 101) * 10
    noise = generator.normal(size=(100, 30))
    vectors = noise / np.sqrt(lengths)[:, None] + np.eye(30)[0] * 0.2
    found = neighbour_bias(vectors, lengths, None, 10)
    assert found.hubness_spearman is not None
    assert found.rank_spearman is not None
    assert found.neighbour_length_ratio is not None
    assert found.hubness_spearman > 0.5
    assert found.rank_spearman < -0.5
    assert found.neighbour_length_ratio > 1.2
    pairs = unrelated_pairs(vectors, lengths, None, 5)
    assert pairs.share_long_above is not None
    assert pairs.share_long_above > 0.5


def test_unrelated_pairs_by_loops() -> None:
    found = unrelated_pairs(VECTORS, LENGTHS, LABELS, 4)
    order = np.argsort(LENGTHS)
    short, long = set(order[:5]), set(order[-5:])
    pairs = {
        name: sorted(
            ((cosine(i, j), i, j) for i in group for j in group if i < j and LABELS[i] != LABELS[j]), reverse=True
        )
        for name, group in (("short", short), ("long", long))
    }
    assert found.pairs == len(pairs["long"])
    assert [(pair.first, pair.second) for pair in found.worst] == [(i, j) for _, i, j in pairs["long"][:4]]
    assert found.mean_long == pytest.approx(np.mean([c for c, _, _ in pairs["long"]]))
    assert found.mean_short == pytest.approx(np.mean([c for c, _, _ in pairs["short"]]))
    high = np.quantile([c for c, _, _ in pairs["short"]], 0.95)
    assert found.share_long_above == pytest.approx(np.mean([c > high for c, _, _ in pairs["long"]]))


def test_too_few_texts_one_label_and_one_length_are_undefined() -> None:
    few = neighbour_bias(VECTORS[:3], LENGTHS[:3], None, K)
    assert (few.hubness_spearman, few.rank_spearman, few.k) == (None, None, 2)
    assert neighbour_bias(VECTORS[:0], LENGTHS[:0], None, K).k == 0
    assert unrelated_pairs(VECTORS[:3], LENGTHS[:3], None, 4).pairs == 0
    assert neighbour_bias(VECTORS, LENGTHS, ["one"] * N, K).accuracy is None
    assert neighbour_bias(VECTORS, LENGTHS, [*LABELS[:-1], None], K).accuracy is None
    assert neighbour_bias(VECTORS, np.full(N, 7), LABELS, K).hubness_spearman is None
