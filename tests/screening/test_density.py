"""Batches that stream, counts, scores and tails against slow and independent ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from embaudit.remedies.screening.density import (
    CHARACTERS_PER_BATCH,
    FALSE_ALARMS,
    TEXTS_PER_BATCH,
    OrdinaryRate,
    counts_of,
    in_batches,
    is_unusual,
    log_tail,
    score,
    tokenised,
)

IDS = st.lists(st.integers(0, 9), min_size=1, max_size=40)


def letters(texts: list[str]) -> list[list[int]]:
    return [[ord(character) for character in text] for text in texts]


@given(st.lists(st.text(max_size=5), max_size=2_000))
def test_every_text_comes_back_in_order_with_its_own_ids(texts: list[str]) -> None:
    found = list(tokenised(enumerate(texts), letters))
    assert [row for row, _, _ in found] == list(range(len(texts)))
    assert [text for _, text, _ in found] == texts
    assert [ids for _, _, ids in found] == letters(texts)


@given(st.lists(st.integers(0, CHARACTERS_PER_BATCH + 10), max_size=30))
def test_no_batch_is_larger_than_the_longest_text_makes_it(sizes: list[int]) -> None:
    rows = [(place, "x" * size) for place, size in enumerate(sizes)]
    batches = list(in_batches(rows))
    assert [row for batch in batches for row in batch] == rows
    for batch in batches:
        assert len(batch) == 1 or sum(len(text) for _, text in batch) <= CHARACTERS_PER_BATCH


def test_an_endless_source_is_read_two_batches_ahead() -> None:
    read = itertools.count()

    def endless() -> Iterator[tuple[int, str]]:
        return ((row, "text") for row in read)

    found = tokenised(endless(), letters)
    assert [next(found)[0] for _ in range(3)] == [0, 1, 2]
    found.close()
    # A batch is known to be full by the row after it.
    assert next(read) <= 2 * TEXTS_PER_BATCH + 1


def test_a_tokenizer_that_fails_is_heard() -> None:
    def broken(texts: list[str]) -> list[list[int]]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        list(tokenised([(0, "text")], broken))


@given(IDS, st.sets(st.integers(0, 9)), st.dictionaries(st.integers(0, 9), st.floats(0, 1)))
def test_counts_and_scores_are_what_a_loop_finds(ids: list[int], wanted: set[int], losses: dict[int, float]) -> None:
    by_hand: dict[int, int] = {}
    for token_id in ids:
        if token_id in wanted:
            by_hand[token_id] = by_hand.get(token_id, 0) + 1
    counts = counts_of(ids, wanted)
    assert counts == by_hand
    known = dict.fromkeys(range(10), 0.0) | losses
    slow = sum(known[token_id] for token_id in ids if token_id in wanted) / len(ids)
    assert score(counts, known, len(ids)) == pytest.approx(slow)
    # Copies of the whole text change no density.
    assert score(counts_of(ids * 3, wanted), known, 3 * len(ids)) == pytest.approx(slow)


@given(st.integers(0, 300), st.integers(1, 300), st.floats(1e-6, 0.9))
def test_the_tail_is_at_least_the_exact_one_and_near_it_where_it_counts(k: int, n: int, rate: float) -> None:
    k = min(k, n)
    exact = float(scipy.stats.binom.logsf(k - 1, n, rate)) if k else 0.0
    found = log_tail(k, n, rate)
    assert found <= 0
    if math.isfinite(exact):
        assert found >= exact - 1e-9
    if k > 2 * n * rate and math.isfinite(exact):
        assert found - exact < math.log(2.5)


@given(st.integers(1, 200), st.integers(1, 200), st.floats(1e-6, 0.5), st.floats(1.0, 2.0))
def test_more_severe_tokens_are_more_unusual_and_a_higher_rate_is_less(
    k: int, n: int, rate: float, more: float
) -> None:
    k = min(k, n)
    assert log_tail(min(k + 1, n), n, rate) <= log_tail(k, n, rate) + 1e-9
    assert log_tail(k, n, min(rate * more, 1.0)) >= log_tail(k, n, rate) - 1e-9


def test_tails_have_no_bottom() -> None:
    assert log_tail(500, 500, 1e-6) == pytest.approx(500 * math.log(1e-6))
    assert log_tail(1, 10, 0.0) == -math.inf
    assert log_tail(3, 3, 1.0) == 0.0


def test_a_text_is_unusual_among_so_many() -> None:
    assert is_unusual(math.log(FALSE_ALARMS / 1_000), 1_000)
    assert not is_unusual(math.log(FALSE_ALARMS / 1_000), 1_001)


def test_a_rate_that_was_never_seen_is_bounded_by_how_far_one_looked() -> None:
    assert OrdinaryRate(1_000, 0).most == pytest.approx(1 - 0.025 ** (1 / 1_000))
    assert OrdinaryRate(1_000, 10).most > 0.01
    assert OrdinaryRate(100_000, 0).most < OrdinaryRate(1_000, 0).most
    assert OrdinaryRate(5, 5).most == 1.0


def test_ordinary_texts_are_flagged_in_one_file_of_a_hundred() -> None:
    """4 000 files of 300 texts whose severe tokens come one by one, at the rate that the screen takes for ordinary."""
    import numpy as np

    rate, n, texts, files = 0.01, 25, 300, 4_000
    most = np.random.default_rng(0).binomial(n, rate, size=(files, texts)).max(axis=1)
    alarms = sum(is_unusual(log_tail(int(k), n, rate), texts) for k in most)
    assert 0 < alarms <= FALSE_ALARMS * files
