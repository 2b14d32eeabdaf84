"""Texts in pieces: nothing is lost but spaces, no piece is too long, and sentences stay whole where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.collection import best_of, is_written, pieces_of, start_of

TEXTS = st.lists(st.sampled_from(["aa", "b", "ccccccc", ".", "!", "。", "\n", " ", "  ", 'd."']), max_size=40).map(
    "".join
)


def words(texts: Sequence[str]) -> list[list[int]]:
    """One token for each word."""
    return [[len(word) for word in text.split()] for text in texts]


def characters(texts: Sequence[str]) -> list[list[int]]:
    """One token for each character that is no space."""
    return [[ord(character) for character in text if not character.isspace()] for text in texts]


@given(TEXTS, st.integers(1, 12))
@settings(max_examples=200)
def test_pieces_are_the_text_and_none_is_too_long(text: str, size: int) -> None:
    pieces = pieces_of(text, size, characters)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert max(map(len, characters(pieces))) <= size
    if len(characters([text])[0]) <= size:
        assert pieces == [text]
    # Two neighbours would not have fitted into one piece.
    lengths = [len(ids) for ids in characters(pieces)]
    assert all(one + other > size for one, other in pairwise(lengths))


def test_sentences_stay_whole_where_they_fit() -> None:
    text = 'One two. Three four five! "Six seven?" Eight nine ten eleven twelve. Thirteen'
    assert pieces_of(text, 5, words) == [
        "One two. Three four five!",
        '"Six seven?"',
        "Eight nine ten eleven twelve.",
        "Thirteen",
    ]
    assert pieces_of(text, 3, words) == [
        "One two.",
        "Three four five!",
        '"Six seven?" Eight',
        "nine ten eleven",
        "twelve. Thirteen",
    ]
    assert pieces_of(text, 100, words) == [text]


def test_a_script_without_spaces_is_cut_between_characters() -> None:
    assert pieces_of("一二三四五。六七八", 6, characters) == ["一二三四五。", "六七八"]
    assert pieces_of("一二三四五六七八", 4, characters) == ["一二三四", "五六七八"]


@pytest.mark.parametrize("text", ["", " ", "a"])
def test_the_shortest_texts_are_one_piece(text: str) -> None:
    assert pieces_of(text, 1, characters) == [text]


def test_the_start_ends_with_a_sentence_if_half_is_left() -> None:
    text = "One two three. Four five six. Seven"
    assert start_of(text, 5, words) == words(["One two three."])[0]
    assert start_of(text, 6, words) == words(["One two three. Four five six."])[0]
    # Of 20 tokens, a first sentence of three would leave too little.
    long = "One two three. " + "word " * 30
    assert start_of(long, 20, words) == words([long])[0][:20]
    assert start_of("One", 5, words) == [3]
    assert start_of("", 5, words) == []


def test_a_text_of_unknown_tokens_is_not_written() -> None:
    assert is_written([1, 0], unknown=0)
    assert is_written([0, 5], unknown=None)
    assert not is_written([1, 0, 0], unknown=0)
    assert not is_written([], unknown=0)


def test_the_best_document_has_the_highest_grade() -> None:
    assert best_of({4: 1.0, 2: 2.0, 9: 2.0}) == 2
