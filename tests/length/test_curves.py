"""Curves of similarity by length: spans and bins, means of cosines, what the controls see, and what explains a rise."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.length import Rise
from embaudit.measures.length.curve import (
    CONTROLS,
    MAX_CONTROL_BINS,
    BinValue,
    control_curves,
    limits_of,
    natural_curve,
    rises,
)
from embaudit.measures.length.spans import (
    LengthBin,
    MeanCosine,
    evenly,
    length_bins,
    longest_common,
    mean_cosine,
    span_start,
    spans_of,
    windows_of,
)
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate


def value(condition: str, low: int, mean: float | None) -> BinValue:
    return BinValue(condition, low, low + 10, low + 5.0, False, MeanCosine(9, mean, None, None))


def curve(condition: str, *means: float | None) -> list[BinValue]:
    return [value(condition, 10 * place, mean) for place, mean in enumerate(means)]


def by_name(values: list[BinValue]) -> dict[str, Rise]:
    return {rise.condition: rise for rise in rises(values)}


def test_shares_are_of_the_bins_that_both_have() -> None:
    found = by_name(
        [
            *curve("natural", 0.1, 0.2, 0.5, None),
            *curve("truncation", None, 0.1, 0.2, 0.3),
            *curve("windows", 0.2, 0.3, 0.6, 0.7),
        ]
    )
    assert found["natural"].rise == pytest.approx(0.4)
    assert (found["natural"].first_length, found["natural"].last_length) == (5, 25)
    assert found["truncation"].share_of_natural == pytest.approx(0.1 / 0.3)
    assert found["windows"].share_of_natural == pytest.approx(1.0)
    assert found["windows"].share_of_truncation == pytest.approx(0.4 / 0.2)
    assert found["natural"].share_of_natural is None
    assert found["truncation"].share_of_truncation is None
    assert found["input_embeddings"].rise is None


def test_a_curve_that_does_not_rise_explains_and_is_explained_by_nothing() -> None:
    found = by_name([*curve("natural", 0.3, 0.3), *curve("truncation", 0.3, 0.2), *curve("windows", 0.1, 0.5)])
    assert found["windows"].share_of_natural is None
    assert found["windows"].share_of_truncation is None
    assert found["truncation"].rise == pytest.approx(-0.1)
    assert by_name(curve("natural", 0.3))["natural"].rise is None
    assert by_name([])["natural"].rise is None


def test_the_interval_of_a_share_leaves_one_text_out_everywhere() -> None:
    generator = np.random.default_rng(0)
    means = np.zeros((4, 8))
    means[:, 0] = (1.0, 2.0, 1.5, 3.0)
    four = [generator.normal(size=(12, 8)) + mean for mean in means]
    names = (("truncation", 0), ("truncation", 10), ("windows", 0), ("windows", 10))
    values = [
        BinValue(condition, low, low + 10, low + 5.0, False, mean_cosine(vectors))
        for (condition, low), vectors in zip(names, four, strict=True)
    ]
    share = Estimate.of(vars(by_name(values)["windows"]), "share_of_truncation")

    def share_of(parts: list[np.ndarray]) -> float:
        a, b, c, d = (float(mean_cosine(part).mean or 0) for part in parts)
        return (d - c) / (b - a)

    without = np.array([share_of([np.delete(part, place, axis=0) for part in four]) for place in range(12)])
    half = 1.96 * np.sqrt(11 / 12 * np.sum((without - without.mean()) ** 2))
    assert share.value == pytest.approx(share_of(four))
    assert share.low == pytest.approx(share_of(four) - half)
    assert share.high == pytest.approx(share_of(four) + half)


# ---- spans ----


@given(limit=st.integers(1, 9_000), width=st.integers(1, 500))
def test_bins_are_contiguous_and_end_with_the_limit(limit: int, width: int) -> None:
    bins = length_bins(limit, width)
    assert (bins[0].low, bins[-1].high) == (0, limit)
    assert all(one.high == two.low for one, two in pairwise(bins))
    assert all(one.high - one.low == width for one in bins[:-1])
    assert all(one.low <= one.length < one.high for one in bins)


def test_a_last_bin_of_a_few_tokens_is_joined() -> None:
    assert length_bins(510)[-1] == LengthBin(400, 510)
    assert length_bins(530)[-1] == LengthBin(500, 530)
    assert length_bins(60) == [LengthBin(0, 60)]


def test_a_span_lies_within_its_text_and_depends_on_nothing_else() -> None:
    ids = list(range(100))
    start = span_start(ids, 30, seed=1)
    assert 0 <= start <= 70
    assert spans_of([[5] * 40, ids, [1, 2]], 30, 2, seed=1)[1] == ids[start : start + 30]
    assert len({span_start(ids, 30, seed) for seed in range(20)}) > 5
    assert span_start(ids, 100, 1) == span_start(ids, 101, 1) == 0


def test_one_rare_long_text_does_not_decide() -> None:
    lengths = [50] * 20 + [300] * 10 + [500] * 9
    assert longest_common(lengths, [20, 40, 60, 400]) == 60
    assert longest_common(lengths, [20, 300, 500]) == 300
    # Fewer than ten texts in all: what all of them have.
    assert longest_common([60, 80, 100], [20, 60, 80]) == 60
    assert longest_common([60], [20]) is None
    assert longest_common([], [20]) is None
    assert longest_common([5, 5], [20]) is None


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 50))
def test_windows_are_the_text_in_order(ids: list[int], size: int) -> None:
    windows = windows_of(ids, size)
    assert [token for window in windows for token in window] == ids
    assert all(len(window) == size for window in windows[:-1])


def test_a_few_bins_stand_for_many() -> None:
    bins = length_bins(8_000)
    few = evenly(bins, 8)
    assert len(few) == 8
    assert (few[0], few[-1]) == (bins[0], bins[-1])
    assert evenly(bins[:3], 8) == bins[:3]


# ---- means of cosines ----


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


# ---- curves ----


BINS = length_bins(126, 40)


def of(values: list[BinValue], condition: str, low: int) -> BinValue:
    return next(value for value in values if value.condition == condition and value.low == low)


def test_the_limits_of_a_checkpoint(tiny_encoder: Encoder) -> None:
    limits = limits_of(tiny_encoder, 2_048)
    # 128 positions, two special tokens, 64 configured.
    assert (limits.configured, limits.positions, limits.read) == (62, 126, 126)
    assert limits_of(tiny_encoder, 100).read == 100


def test_natural_texts_are_binned_by_their_own_length(
    tiny_encoder: Encoder, tiny: Checkpoint, contents: list[list[int]]
) -> None:
    values, vectors = natural_curve(tiny_encoder, contents, BINS)
    assert [(value.low, value.high, value.cosine.texts) for value in values] == [(0, 40, 4), (40, 80, 4), (80, 126, 5)]
    assert vectors.shape == (20, 32)
    inside = [ids for ids in contents if 40 <= len(ids) < 80]
    encoded = Encoder(tiny).encode_ids([tiny.with_special_tokens(ids) for ids in inside])
    assert values[1].cosine.mean == pytest.approx(mean_cosine(encoded).mean, abs=1e-6)
    assert values[1].length == np.mean([len(ids) for ids in inside])
    assert [value.beyond_limit for value in values] == [False, False, True]


def test_texts_beyond_the_positions_are_cut_and_left_out_of_the_curve(
    tiny_encoder: Encoder, contents: list[list[int]]
) -> None:
    long = [ids for ids in contents if len(ids) > 126]
    values, vectors = natural_curve(tiny_encoder, long, BINS)
    assert [value.cosine.texts for value in values] == [0, 0, 0]
    assert [value.cosine.mean for value in values] == [None] * 3
    assert np.isfinite(vectors).all()
    one, _ = natural_curve(tiny_encoder, contents[:1], BINS)
    assert (one[0].cosine.texts, one[0].cosine.mean) == (1, None), "one text has no pair: counted, not averaged"


def test_the_controls_see_the_same_tokens(tiny_encoder: Encoder, tiny: Checkpoint, contents: list[list[int]]) -> None:
    values = control_curves(tiny_encoder, contents, BINS, most_texts=6, window=16, seed=5)
    longest = BINS[-1].length
    spans = []
    for ids in [ids for ids in contents if len(ids) >= longest][:6]:
        start = span_start(ids, longest, 5)
        spans.append(ids[start : start + longest])
    table = tiny.model.get_input_embeddings().weight.detach().numpy().astype(float)
    for one in BINS:
        cut = [span[: one.length] for span in spans]
        truncated = Encoder(tiny).encode_ids([tiny.with_special_tokens(ids) for ids in cut])
        averaged = []
        for ids in cut:
            total = np.zeros(32)
            for start in range(0, len(ids), 16):
                piece = ids[start : start + 16]
                vector = Encoder(tiny).encode_ids([tiny.with_special_tokens(piece)])[0]
                total += len(piece) * vector.astype(float)
            averaged.append(total / len(ids))
        pooled = np.array([[np.mean([table[i][k] for i in ids]) for k in range(32)] for ids in cut])
        for condition, vectors in zip(CONTROLS, (truncated, np.array(averaged), pooled), strict=True):
            found = of(values, condition, one.low)
            assert found.cosine.texts == 6
            assert found.length == one.length
            assert found.cosine.mean == pytest.approx(mean_cosine(vectors).mean, abs=1e-5), condition


def test_one_window_is_the_truncation(tiny_encoder: Encoder, contents: list[list[int]]) -> None:
    values = control_curves(tiny_encoder, contents, BINS, most_texts=5, window=126, seed=0)
    for one in BINS:
        windows, truncation = (of(values, name, one.low).cosine.mean for name in ("windows", "truncation"))
        assert windows == pytest.approx(truncation, abs=1e-6)


def test_lengths_that_too_few_texts_have_are_reported_and_not_averaged(
    tiny_encoder: Encoder, contents: list[list[int]]
) -> None:
    short = [ids[:50] for ids in contents]
    values = control_curves(tiny_encoder, short, BINS, most_texts=50, window=16, seed=0)
    assert len(values) == 9
    assert [of(values, "truncation", one.low).cosine.texts for one in BINS] == [18, 0, 0]
    assert of(values, "windows", 80).cosine.mean is None
    nothing = control_curves(tiny_encoder, [[7]], BINS, most_texts=50, window=16, seed=0)
    assert {value.cosine.texts for value in nothing} == {0}


def test_many_bins_are_controlled_at_a_few(tiny_encoder: Encoder, contents: list[list[int]]) -> None:
    bins = length_bins(120, 10)
    values = control_curves(tiny_encoder, contents, bins, most_texts=4, window=16, seed=0)
    assert len(values) == MAX_CONTROL_BINS * len(CONTROLS)
    assert {bins[0].low, bins[-1].low} <= {value.low for value in values}
