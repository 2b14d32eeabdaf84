"""The distribution of a vocabulary's similarities, against scipy on all pairs at once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.vocabulary import read_vocabulary
from embaudit.corpora.load import load_corpus
from embaudit.measures.sticky.evidence.enrichment import enrichment_rows
from embaudit.measures.sticky.evidence.shape import (
    GROUPS,
    LEVELS,
    SAMPLED_TOKENS,
    SHAPES,
    sample_tokens,
    similarity_shape,
)
from embaudit.measures.sticky.insertion import distinct_sentences, split_sentences
from embaudit.measures.sticky.moments import insert_tokens, score
from embaudit.measures.sticky.plan import eligible_tokens
from embaudit.measures.sticky.points import Points, every_against_every


def cosines_of(vectors: np.ndarray) -> np.ndarray:
    """Of all pairs of different rows, by a plain loop."""
    return np.array(
        [
            vectors[i] @ vectors[j] / np.linalg.norm(vectors[i]) / np.linalg.norm(vectors[j])
            for j in range(len(vectors))
            for i in range(j)
        ]
    )


def shapes_of(cosines: np.ndarray) -> list[float]:
    gaussian = scipy.stats.norm(cosines.mean(), cosines.std())
    return [
        float(scipy.stats.skew(cosines)),
        float(scipy.stats.kurtosis(cosines)),
        float(scipy.stats.kstest(cosines, gaussian.cdf).statistic),
    ]


def vectors_of(seed: int, count: int, offset: float = 0.7) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 8)) + offset


def found(vectors: np.ndarray) -> dict[str, Any]:
    shape = similarity_shape(vectors)
    assert shape is not None
    return shape


@given(seed=st.integers(0, 10**6), count=st.integers(3, 60), offset=st.sampled_from([0.0, 0.7, 20.0]))
@settings(max_examples=40, deadline=None)
def test_it_is_scipys_of_all_pairs(seed: int, count: int, offset: float) -> None:
    vectors = vectors_of(seed, count, offset)
    cosines = cosines_of(vectors)
    shape = found(vectors)
    assert (shape["tokens"], shape["pairs"]) == (count, len(cosines))
    assert [shape["mean"], shape["sd"]] == pytest.approx([cosines.mean(), cosines.std()])
    assert [shape["lowest"], shape["highest"]] == pytest.approx([cosines.min(), cosines.max()])
    skewness, kurtosis, distance = shapes_of(cosines)
    assert shape["skewness"] == pytest.approx(skewness, abs=1e-6)
    assert shape["excess_kurtosis"] == pytest.approx(kurtosis, abs=1e-6)
    # Between two edges of bins the empirical share jumps, and the Gaussian's rises by at most its density.
    if cosines.std() > 1e-3:
        assert distance - 4e-5 / cosines.std() <= shape["gaussian_distance"] <= distance + 1e-12
    else:
        assert shape["gaussian_distance"] is None
    ordered = [shape["lowest"], *(shape[name] for name in LEVELS), shape["highest"]]
    assert ordered == sorted(ordered)


def test_quantiles_are_exact_to_the_width_of_a_bin() -> None:
    vectors = vectors_of(1, 300)
    cosines, shape = cosines_of(vectors), found(vectors)
    assert [shape[name] for name in LEVELS] == pytest.approx(
        np.quantile(cosines, list(LEVELS.values())).tolist(), abs=5e-3
    )
    assert [shape["q25"], shape["q50"], shape["q75"]] == pytest.approx(
        np.quantile(cosines, [0.25, 0.5, 0.75]).tolist(), abs=3e-4
    )


def test_the_interval_leaves_out_groups_of_tokens_with_all_their_pairs() -> None:
    vectors = vectors_of(2, 100)
    shape = found(vectors)
    groups = np.array_split(np.arange(100), GROUPS)
    without = np.array([shapes_of(cosines_of(np.delete(vectors, group, axis=0))) for group in groups])
    half = 1.96 * np.sqrt((GROUPS - 1) / GROUPS * np.square(without - without.mean(axis=0)).sum(axis=0))
    for place, name in enumerate(SHAPES):
        close = 2e-3 if name == "gaussian_distance" else 1e-6
        assert shape[f"{name}_high"] - shape[name] == pytest.approx(half[place], abs=close)
        assert shape[name] - shape[f"{name}_low"] == pytest.approx(half[place], abs=close)


def test_lengths_of_vectors_do_not_count_and_rows_of_zeros_are_left_out() -> None:
    vectors = vectors_of(3, 40)
    scaled = vectors * np.linspace(0.1, 9, 40)[:, None]
    scaled = np.concatenate([scaled, np.zeros((2, 8))])
    one, other = found(vectors), found(scaled)
    for name in one.keys() - {f"{shape}_{end}" for shape in SHAPES for end in ("low", "high")}:
        assert other[name] == pytest.approx(one[name], abs=1e-9), name


def test_isotropic_vectors_in_many_dimensions_are_nearly_gaussian_and_two_clusters_are_not() -> None:
    """Cosines of isotropic vectors have variance 1/d and excess kurtosis −6/(d + 2)."""
    generator = np.random.default_rng(5)
    shape = found(generator.normal(size=(1500, 64)))
    assert shape["skewness_low"] < 0 < shape["skewness_high"]
    assert shape["excess_kurtosis_low"] < -6 / 66 < shape["excess_kurtosis_high"]
    assert shape["sd"] == pytest.approx(1 / 8, rel=0.02)
    assert shape["gaussian_distance"] < 0.01
    clusters = generator.normal(size=(400, 64)) + np.repeat([[3.0], [-3.0]], 200, axis=0)
    assert found(clusters)["gaussian_distance"] > 0.3


def test_what_does_not_vary_has_no_shape_and_few_tokens_no_interval() -> None:
    alike = found(np.ones((30, 4)))
    assert [alike[name] for name in SHAPES] == [None, None, None]
    assert alike["q50"] == pytest.approx(1, abs=1e-4)
    few = found(vectors_of(1, 9))
    assert few["skewness"] is not None
    assert few["skewness_low"] is None
    assert similarity_shape(np.ones((1, 4))) is None
    assert similarity_shape(np.zeros((5, 4))) is None


def test_the_sample_is_the_same_and_of_different_tokens() -> None:
    sampled = sample_tokens(30_000)
    assert len(set(sampled.tolist())) == SAMPLED_TOKENS
    assert np.array_equal(sampled, sample_tokens(30_000))
    assert sorted(sample_tokens(50).tolist()) == list(range(50))


# ---- what the paper and method say of real tokens, checked on all-MiniLM-L6-v2 with real STS pairs ----


U = 0.19985


def real_points(encoder: Encoder, shared: Path, draws: int) -> Points:
    pairs = load_corpus("sts", str(shared / "data/sts/stsb/stsb-en-dev.csv")).pairs
    sentences = distinct_sentences([side for pair in pairs for side in (pair.first, pair.second)], 600, 0)
    chosen, _ = split_sentences(sentences, draws, 10, 0)
    return every_against_every(encoder, chosen.draws, chosen.anchors, U, 8, 0, 2)


@pytest.mark.slow
def test_rare_and_multilingual_entries_are_enriched_tenfold_among_the_least_retaining(
    minilm: Checkpoint, shared: Path
) -> None:
    encoder = Encoder(minilm)
    entries = [
        {**asdict(entry), "embedding_norm": 1.0, "cosine_to_mean": None}
        for entry in read_vocabulary(minilm.tokenizer, minilm.vocabulary_size)
    ]
    # One in five, and as deep in them as a hundred are in all.
    tokens = eligible_tokens(entries)[::5]
    points = real_points(encoder, shared, 1)
    slopes = score(points, insert_tokens(encoder, points, tokens, [0])).slope
    lowest = tokens[np.argsort(slopes)[:20]].tolist()
    rows = enrichment_rows(entries, set(tokens.tolist()), {"lowest_20": lowest})
    by_attribute = {row["attribute"]: row for row in rows if row["value"] == "yes"}
    assert by_attribute["non_latin"]["fold"] >= 10
    assert by_attribute["non_latin_or_symbol"]["fold"] >= 10
    assert by_attribute["non_latin"]["p_value"] < 1e-6


@pytest.mark.slow
def test_values_hold_to_a_millionth_over_batches_shards_and_subsets(minilm: Checkpoint, shared: Path) -> None:
    encoder = Encoder(minilm)
    points = real_points(encoder, shared, 40)
    tokens = np.array([1934, 2003, 12471, 16579, 26728, 30072])

    def values(batch: int | None, *parts: np.ndarray) -> np.ndarray:
        found = [score(points, insert_tokens(Encoder(minilm, batch), points, part, range(40))) for part in parts]
        return np.concatenate([np.stack([one.pull, one.slope]) for one in found], axis=1)

    whole = values(None, tokens)
    assert np.abs(values(None, tokens) - whole).max() == 0
    assert np.abs(values(64, tokens) - whole).max() <= 1e-6
    assert np.abs(values(None, tokens[:1], tokens[1:4], tokens[4:]) - whole).max() <= 1e-6
    assert np.abs(values(None, tokens[2:3]) - whole[:, 2:3]).max() <= 1e-6
