"""The four conditions on a tiny checkpoint, against encodes and averages written out."""

from __future__ import annotations

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.length.curve import (
    CONTROLS,
    MAX_CONTROL_BINS,
    BinValue,
    control_curves,
    limits_of,
    natural_curve,
)
from embaudit.measures.length.spans import length_bins, mean_cosine, span_start

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
