"""SOCM against the definition by d x d square roots, against POT, and against what the mathematics demands."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.checkpoint import Encoder
from embaudit.errors import MeasureError
from embaudit.socm import (
    TRACE_BOUND,
    TokenCloud,
    all_pairs,
    count_pairs_of_shard,
    plan_blocks,
    summarise,
    token_cloud,
)


def random_texts(seed: int, count: int, d: int, longest: int = 12, offset: float = 1.5) -> list[np.ndarray]:
    """Token embeddings around a common direction, so that means are long enough to divide by."""
    generator = np.random.default_rng(seed)
    direction = generator.normal(size=d)
    return [
        generator.normal(size=(int(generator.integers(1, longest + 1)), d)) + offset * direction for _ in range(count)
    ]


def clouds_of(texts: list[np.ndarray]) -> list[TokenCloud]:
    return [token_cloud(position, X) for position, X in enumerate(texts)]


def table_of(clouds: list[TokenCloud], shards: int = 1) -> dict[tuple[int, int], tuple[float, float, float]]:
    """All pairs as a mapping (first, second) -> (d_mu, d_sigma, socm)."""
    table = {}
    for shard in range(shards):
        for block in all_pairs(clouds, shard=shard, shards=shards):
            for i, j, *values in zip(block.first, block.second, block.d_mu, block.d_sigma, block.socm, strict=True):
                assert (int(i), int(j)) not in table, "a pair came twice"
                table[int(i), int(j)] = tuple(map(float, values))
    return table


def by_definition(X1: np.ndarray, X2: np.ndarray) -> tuple[float, float, float]:
    """Equation by equation: d x d covariances and scipy's matrix square roots."""
    X1, X2 = X1 / np.linalg.norm(X1.mean(0)), X2 / np.linalg.norm(X2.mean(0))
    mu1, mu2 = X1.mean(0), X2.mean(0)
    S1, S2 = (np.cov(X.T, bias=True).reshape(X.shape[1], -1) for X in (X1, X2))
    root = np.real(scipy.linalg.sqrtm(S1))
    cross = np.real(scipy.linalg.sqrtm(root @ S2 @ root))
    d_mu = np.square(mu1 - mu2).sum() / 4
    d_sigma = np.trace(S1 + S2 - 2 * cross) / 4
    return d_mu, d_sigma, (1 - d_mu) * d_sigma


@pytest.mark.parametrize("d", [3, 8, 16])
def test_agrees_with_matrix_square_roots(d: int) -> None:
    # Longer than d tokens, so that scipy's sqrtm is not asked for the root of a singular matrix.
    generator = np.random.default_rng(d)
    texts = [generator.normal(size=(d + 4 + k, d)) + 1.0 for k in range(5)]
    table = table_of(clouds_of(texts))
    for i, j in combinations(range(len(texts)), 2):
        assert table[i, j] == pytest.approx(by_definition(texts[i], texts[j]), abs=1e-7)


def test_agrees_with_pot() -> None:
    ot = pytest.importorskip("ot", reason="needs POT, a test dependency")
    texts = random_texts(1, 6, 10, longest=30)
    texts = [X for X in texts if len(X) > 11]
    clouds = clouds_of(texts)
    table = table_of(clouds)
    for i, j in combinations(range(len(texts)), 2):
        S1, S2 = (clouds[k].centred.T @ clouds[k].centred / clouds[k].n for k in (i, j))
        zero = np.zeros(10)
        distance = ot.gaussian.bures_wasserstein_distance(zero, zero, S1, S2)
        assert table[i, j][1] == pytest.approx(distance**2 / 4, abs=1e-7)


@given(seed=st.integers(0, 10**6), count=st.integers(2, 9), d=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_bounds_that_follow_from_the_mathematics(seed: int, count: int, d: int) -> None:
    clouds = clouds_of(random_texts(seed, count, d, offset=3.0))
    for (i, j), (d_mu, d_sigma, socm) in table_of(clouds).items():
        t1, t2 = clouds[i].trace, clouds[j].trace
        assert -1e-12 <= d_mu <= 1 + 1e-12
        rounding = 1e-7 * (1 + t1 + t2)
        assert (np.sqrt(t1) - np.sqrt(t2)) ** 2 / 4 - rounding <= d_sigma <= (t1 + t2) / 4 + rounding
        assert socm <= d_sigma + rounding
        if max(t1, t2) <= TRACE_BOUND:
            assert -1e-7 <= socm <= 1 + 1e-7


@given(seed=st.integers(0, 10**6), shards=st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_shards_together_give_every_pair_once(seed: int, shards: int) -> None:
    clouds = clouds_of(random_texts(seed, 12, 6))
    whole, parts = table_of(clouds), table_of(clouds, shards=shards)
    assert set(parts) == set(combinations(range(12), 2)) == set(whole)
    assert max(abs(np.subtract(parts[pair], whole[pair])).max() for pair in whole) < 1e-12
    assert sum(count_pairs_of_shard(clouds, shard, shards) for shard in range(shards)) == 66


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_order_of_texts_and_tokens_does_not_matter(seed: int) -> None:
    generator = np.random.default_rng(seed)
    texts = random_texts(seed, 7, 5)
    order = generator.permutation(7)
    shuffled = [texts[k][generator.permutation(len(texts[k]))] for k in order]
    straight, mixed = table_of(clouds_of(texts)), table_of(clouds_of(shuffled))
    for (a, b), values in mixed.items():
        i, j = sorted((int(order[a]), int(order[b])))
        assert values == pytest.approx(straight[i, j], abs=1e-6)


@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e6))
@settings(max_examples=25, deadline=None)
def test_scale_of_the_embeddings_does_not_matter(seed: int, scale: float) -> None:
    texts = random_texts(seed, 4, 5)
    straight, scaled = table_of(clouds_of(texts)), table_of(clouds_of([scale * X for X in texts]))
    for pair, values in straight.items():
        assert scaled[pair] == pytest.approx(values, abs=1e-6)


def test_block_size_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    clouds = clouds_of(random_texts(3, 20, 6, longest=40))
    whole = table_of(clouds)
    monkeypatch.setattr("embaudit.socm.TOKENS_PER_BLOCK", 48)
    small = table_of(clouds)
    assert max(abs(np.subtract(small[pair], whole[pair])).max() for pair in whole) < 1e-6


def test_identical_texts_have_no_distance() -> None:
    X = np.random.default_rng(0).normal(size=(9, 4)) + 2
    ((_, values),) = table_of(clouds_of([X, X.copy()])).items()
    assert values == pytest.approx((0, 0, 0), abs=1e-7)


def test_one_token_text_has_no_spread() -> None:
    texts = [np.ones((1, 4)), np.random.default_rng(0).normal(size=(5, 4)) + 2]
    clouds = clouds_of(texts)
    assert clouds[0].trace == 0
    # Nothing overlaps with a point: all of the other text's spread is distance.
    assert table_of(clouds)[0, 1][1] == pytest.approx(clouds[1].trace / 4)


def test_a_mean_of_zero_is_an_error_that_names_the_text() -> None:
    with pytest.raises(MeasureError, match="text 7"):
        token_cloud(7, np.array([[1.0, 0.0], [-1.0, 0.0]]))


def test_one_text_alone_is_an_error() -> None:
    with pytest.raises(MeasureError, match="at least two"):
        next(all_pairs(clouds_of(random_texts(0, 1, 3))))


def test_traces_above_two_are_reported_and_not_clipped() -> None:
    texts = [np.array([[1.0, 8.0], [1.0, -8.0]]), np.array([[1.0, 0.1], [1.0, -0.1]])]
    clouds = clouds_of(texts)
    summary = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds))
    assert summary.trace_max == pytest.approx(64)
    assert summary.share_trace_above_bound == 0.5
    assert summary.socm_max > 1


def test_summary_equals_the_plain_averages_and_the_jackknife_by_hand() -> None:
    clouds = clouds_of(random_texts(5, 8, 6))
    table = table_of(clouds)
    summary = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds))
    values = np.array(list(table.values()))
    assert (summary.texts, summary.pairs) == (8, 28)
    assert [summary.d_mu_mean, summary.d_sigma_mean, summary.socm_mean] == pytest.approx(values.mean(0).tolist())
    assert (summary.socm_min, summary.socm_max) == (values[:, 2].min(), values[:, 2].max())
    # Leave one text out, average the rest, and again.
    without = [np.mean([v[2] for pair, v in table.items() if left not in pair]) for left in range(8)]
    error = np.sqrt(7 / 8 * np.square(np.array(without) - np.mean(without)).sum())
    assert summary.socm_low == pytest.approx(summary.socm_mean - 1.96 * error)
    assert summary.socm_high == pytest.approx(summary.socm_mean + 1.96 * error)


def test_blocks_hold_texts_of_similar_length_within_the_budget() -> None:
    lengths = [5, 400, 7, 2000, 6, 5, 300]
    blocks = plan_blocks(lengths)
    assert sorted(index for block in blocks for index in block) == list(range(len(lengths)))
    for block in blocks:
        assert len(block) == 1 or len(block) * max(lengths[index] for index in block) <= 1024


def test_golden_figures_of_200_wikipedia_sentences(encoder: Encoder, shared: Path) -> None:
    golden = json.loads((shared / "golden/socm_layers_all_minilm_l6_v2.json").read_text())
    lines = (shared / "data/wikipedia/wiki1m_sample.txt").read_text(errors="ignore").split("\n")
    texts = [line for line in lines if line.strip()][:1000]
    clouds = [token_cloud(index, X) for index, X in encoder.token_embeddings(texts)]
    traces = np.array([cloud.trace for cloud in sorted(clouds, key=lambda cloud: cloud.position)])
    expected = golden["trace_sigma_first_1000"]
    assert traces.mean() == pytest.approx(expected["mean"], abs=1e-5)
    assert traces.max() == pytest.approx(expected["max"], abs=1e-5)
    assert int((traces > 2).sum()) == expected["above_2"]
    assert np.mean([cloud.n for cloud in clouds]) == pytest.approx(expected["mean_tokens"])

    first = [cloud for cloud in clouds if cloud.position < 200]
    summary = summarise(traces[:200], all_pairs(first))
    expected = golden["first_200_lines"]
    assert summary.socm_mean == pytest.approx(expected["socm"], abs=1e-6)
    assert summary.d_mu_mean == pytest.approx(expected["d_mu"], abs=1e-6)
    assert summary.d_sigma_mean == pytest.approx(expected["d_sigma"], abs=1e-6)
    assert summary.socm_max == pytest.approx(expected["socm_max"], abs=1e-5)
    assert summary.socm_min == pytest.approx(expected["socm_min"], abs=1e-5)
