"""Sentences: distinct, and dealt to purposes so that none is used twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.sticky.insertion import distinct_sentences, split_sentences
from embaudit.words.errors import CorpusError

SENTENCES = [f"sentence {number}" for number in range(1_200)]


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(8, 1_200),
    draws=st.integers(4, 40),
    validation=st.integers(10, 300),
)
@settings(max_examples=60)
def test_every_sentence_is_used_once_and_anchors_get_their_half(
    seed: int, count: int, draws: int, validation: int
) -> None:
    scoring, validated = split_sentences(SENTENCES[:count], draws, validation, seed)
    used = [*scoring.draws, *scoring.anchors, *validated.draws, *validated.anchors]
    assert sorted(used) == sorted(SENTENCES[:count])
    assert 2 <= len(scoring.draws) <= draws
    assert 2 <= len(validated.draws) <= validation
    assert len(scoring.anchors) + len(validated.anchors) >= count / 2
    assert abs(len(scoring.anchors) - len(validated.anchors)) <= 1
    if count >= 4 * max(draws, validation):
        assert (len(scoring.draws), len(validated.draws)) == (draws, validation)


def test_the_same_seed_deals_the_same_and_another_seed_otherwise() -> None:
    one, same, other = (split_sentences(SENTENCES[:200], 16, 30, seed) for seed in (7, 7, 8))
    assert one == same
    assert set(one[0].draws) != set(other[0].draws)


def test_too_few_sentences_is_an_error_that_says_how_many() -> None:
    with pytest.raises(CorpusError, match="has 6"):
        split_sentences(SENTENCES[:6], 16, 30, 0)


def test_distinct_sentences_drop_blanks_and_repeats_and_keep_order() -> None:
    assert distinct_sentences(["b", "", " a ", "b", "c"], 10, 0) == ["b", "a", "c"]
    drawn = distinct_sentences([str(n) for n in range(100)], 10, 0)
    assert drawn == sorted(drawn, key=int)
    assert len(drawn) == 10
