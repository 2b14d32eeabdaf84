"""SOCM against the definition by d x d square roots, against POT, and against what the mathematics demands."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import by_definition, clouds_from, random_texts, table_of

from embaudit.checkpoint import Encoder
from embaudit.measures.socm.clouds import TRACE_BOUND, TokenCloud, token_cloud
from embaudit.measures.socm.nuclear import Eigenvalues
from embaudit.measures.socm.pairs import all_pairs, count_pairs_of_shard, plan_blocks
from embaudit.measures.socm.summary import summarise
from embaudit.words.errors import MeasureError


@pytest.mark.parametrize("d", [3, 8, 16])
def test_agrees_with_matrix_square_roots(d: int) -> None:
    # Longer than d tokens, so that scipy's sqrtm is not asked for the root of a singular matrix.
    generator = np.random.default_rng(d)
    texts = [generator.normal(size=(d + 4 + k, d)) + 1.0 for k in range(5)]
    table = table_of(clouds_from(texts))
    for i, j in combinations(range(len(texts)), 2):
        assert table[i, j] == pytest.approx(by_definition(texts[i], texts[j]), abs=1e-7)


def test_agrees_with_pot() -> None:
    ot = pytest.importorskip("ot")
    texts = random_texts(1, 6, 10, longest=30)
    texts = [X for X in texts if len(X) > 11]
    clouds = clouds_from(texts)
    table = table_of(clouds)
    for i, j in combinations(range(len(texts)), 2):
        S1, S2 = (clouds[k].centred.T @ clouds[k].centred / clouds[k].n for k in (i, j))
        zero = np.zeros(10)
        distance = ot.gaussian.bures_wasserstein_distance(zero, zero, S1, S2)
        assert table[i, j][1] == pytest.approx(distance**2 / 4, abs=1e-7)


@given(seed=st.integers(0, 10**6), count=st.integers(2, 9), d=st.integers(1, 12))
@settings(max_examples=60)
def test_bounds_that_follow_from_the_mathematics(seed: int, count: int, d: int) -> None:
    clouds = clouds_from(random_texts(seed, count, d, offset=3.0))
    for (i, j), (d_mu, d_sigma, socm) in table_of(clouds).items():
        t1, t2 = clouds[i].trace, clouds[j].trace
        assert -1e-12 <= d_mu <= 1 + 1e-12
        rounding = 1e-7 * (1 + t1 + t2)
        assert (np.sqrt(t1) - np.sqrt(t2)) ** 2 / 4 - rounding <= d_sigma <= (t1 + t2) / 4 + rounding
        assert socm <= d_sigma + rounding
        if max(t1, t2) <= TRACE_BOUND:
            assert -1e-7 <= socm <= 1 + 1e-7


@given(seed=st.integers(0, 10**6), shards=st.integers(1, 5))
@settings(max_examples=25)
def test_shards_together_give_every_pair_once(seed: int, shards: int) -> None:
    clouds = clouds_from(random_texts(seed, 12, 6))
    whole, parts = table_of(clouds), table_of(clouds, shards=shards)
    assert set(parts) == set(combinations(range(12), 2)) == set(whole)
    assert max(abs(np.subtract(parts[pair], whole[pair])).max() for pair in whole) < 1e-12
    assert sum(count_pairs_of_shard(clouds, shard, shards) for shard in range(shards)) == 66


@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e6))
@settings(max_examples=40)
def test_order_of_texts_and_tokens_rotation_and_scale_do_not_matter(seed: int, scale: float) -> None:
    generator = np.random.default_rng(seed)
    texts = random_texts(seed, 7, 5)
    order, turn = generator.permutation(7), scipy.stats.ortho_group.rvs(5, random_state=seed)
    shuffled = [scale * texts[k][generator.permutation(len(texts[k]))] @ turn for k in order]
    straight, mixed = table_of(clouds_from(texts)), table_of(clouds_from(shuffled))
    for (a, b), values in mixed.items():
        i, j = sorted((int(order[a]), int(order[b])))
        assert values == pytest.approx(straight[i, j], abs=1e-6)


def test_block_size_and_workers_do_not_matter() -> None:
    clouds = clouds_from(random_texts(3, 20, 6, longest=40))
    whole = table_of(clouds)
    norms = Eigenvalues(workers=3)
    norms.tokens_per_block = 48
    small = table_of(clouds, norms=norms)
    assert set(small) == set(whole)
    assert max(abs(np.subtract(small[pair], whole[pair])).max() for pair in whole) < 1e-6


def test_one_text_alone_is_an_error() -> None:
    with pytest.raises(MeasureError, match="at least two"):
        next(all_pairs(clouds_from(random_texts(0, 1, 3))))


def test_blocks_hold_texts_of_similar_length_within_the_budget() -> None:
    lengths = [5, 400, 7, 2000, 6, 5, 300]
    blocks = plan_blocks(lengths)
    assert sorted(index for block in blocks for index in block) == list(range(len(lengths)))
    for block in blocks:
        assert len(block) == 1 or len(block) * max(lengths[index] for index in block) <= 1024


def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden/socm_layers_all_minilm_l6_v2.json").read_text())


def clouds_of_wikipedia(encoder: Encoder, shared: Path, lines: int) -> list[TokenCloud]:
    text = (shared / "data/wikipedia/wiki1m_sample.txt").read_text(errors="ignore")
    texts = [line for line in text.split("\n") if line.strip()][:lines]
    clouds = [token_cloud(index, X) for index, X in encoder.token_embeddings(texts)]
    return sorted(clouds, key=lambda cloud: cloud.position)


@pytest.mark.slow
def test_golden_traces_of_1000_wikipedia_sentences(encoder: Encoder, shared: Path) -> None:
    clouds, expected = clouds_of_wikipedia(encoder, shared, 1000), golden(shared)["trace_sigma_first_1000"]
    traces = np.array([cloud.trace for cloud in clouds])
    assert traces.mean() == pytest.approx(expected["mean"], abs=1e-5)
    assert traces.max() == pytest.approx(expected["max"], abs=1e-5)
    assert int((traces > 2).sum()) == expected["above_2"]
    assert np.mean([cloud.n for cloud in clouds]) == pytest.approx(expected["mean_tokens"])


def test_golden_figures_of_200_wikipedia_sentences(encoder: Encoder, shared: Path) -> None:
    clouds, expected = clouds_of_wikipedia(encoder, shared, 200), golden(shared)["first_200_lines"]
    summary = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds))
    assert summary.socm_mean == pytest.approx(expected["socm"], abs=1e-6)
    assert summary.d_mu_mean == pytest.approx(expected["d_mu"], abs=1e-6)
    assert summary.d_sigma_mean == pytest.approx(expected["d_sigma"], abs=1e-6)
    assert summary.socm_max == pytest.approx(expected["socm_max"], abs=1e-5)
    assert summary.socm_min == pytest.approx(expected["socm_min"], abs=1e-5)
