"""Where the copies go, what is cut, and that positions depend on nothing but seed and sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint
from embaudit.measures.sticky.insertion import OPERATORS, Operator, make_draw
from embaudit.words.errors import MeasureError

SENTENCE = "the quick brown fox jumps over the lazy dog"
TOKEN = 2323


def inserted(checkpoint: Checkpoint, operator: Operator, seed: int = 0, text: str = SENTENCE) -> list[int]:
    return make_draw(checkpoint, text, operator, 8, seed).insert(np.array([TOKEN]))[0].tolist()


def test_prefix_and_suffix_stand_inside_the_special_tokens(minilm: Checkpoint) -> None:
    content = minilm.content_ids(SENTENCE)
    assert inserted(minilm, "prefix") == [101, *[TOKEN] * 8, *content, 102]
    assert inserted(minilm, "suffix") == [101, *content, *[TOKEN] * 8, 102]


@pytest.mark.parametrize("operator", OPERATORS)
def test_removing_the_copies_gives_the_baseline(minilm: Checkpoint, operator: Operator) -> None:
    draw = make_draw(minilm, SENTENCE, operator, 8, 0)
    row = draw.insert(np.array([TOKEN]))[0]
    assert row[row != TOKEN].tolist() == list(draw.baseline)
    assert (row == TOKEN).sum() == 8


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_long_sentence_is_cut_so_that_all_copies_survive(minilm: Checkpoint, operator: Operator) -> None:
    long = "word " * 1000
    row = inserted(minilm, operator, text=long)
    assert len(row) == minilm.max_length
    assert row.count(TOKEN) == 8
    draw = make_draw(minilm, long, operator, 8, 0)
    assert len(draw.baseline) == minilm.max_length - 8


def test_random_places_are_the_same_for_every_token_and_differ_by_seed_and_sentence(minilm: Checkpoint) -> None:
    draw = make_draw(minilm, SENTENCE, "random", 8, 0)
    rows = draw.insert(np.array([5000, 6000, 7000]))
    places = [np.flatnonzero(row == token).tolist() for row, token in zip(rows, (5000, 6000, 7000), strict=True)]
    assert places[0] == places[1] == places[2]
    assert inserted(minilm, "random", seed=0) == inserted(minilm, "random", seed=0)
    assert inserted(minilm, "random", seed=0) != inserted(minilm, "random", seed=1)


def test_no_room_for_a_sentence_is_an_error_that_names_the_limit(minilm: Checkpoint) -> None:
    short = dataclasses.replace(minilm, limits={"text": 10})
    with pytest.raises(MeasureError, match="10 tokens"):
        make_draw(short, SENTENCE, "suffix", 8, 0)
