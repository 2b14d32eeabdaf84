"""Bins, spans and windows."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from embaudit.measures.length.spans import (
    LengthBin,
    evenly,
    length_bins,
    longest_common,
    span_start,
    spans_of,
    windows_of,
)


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
