"""Copies in texts: how many, where, what is cut for them, and that every one of them is read."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ENGLISH

from embaudit.checkpoint import AskedPrompts, Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.corpora.downstream.material import pick_judged
from embaudit.measures.impact.arms import copies_for, order_of, poison, poisoned_half
from embaudit.words.errors import NotMeasurable

WORDS = ENGLISH.split()
TOKEN = 7


def texts(lengths: list[int]) -> list[str]:
    return [" ".join(WORDS[(place + step) % len(WORDS)] for step in range(n)) for place, n in enumerate(lengths)]


@pytest.fixture(scope="module")
def encoder(tiny: Checkpoint) -> Encoder:
    return Encoder(tiny)


def test_a_tenth_of_the_words_before_or_behind(encoder: Encoder) -> None:
    given = texts([1, 10, 11, 25, 30, 31])
    found = poison(encoder, given, TOKEN, seed=0)
    assert found.copies.tolist() == [1, 1, 2, 3, 3, 4]
    assert not found.shortened.any()
    places = []
    for text, ids, count in zip(given, found.sequences, found.copies, strict=True):
        plain = encoder.tokenize([text])[0]
        copies = [TOKEN] * count
        behind, before = [*plain[:-1], *copies, plain[-1]], [plain[0], *copies, *plain[1:]]
        assert ids in (behind, before)
        places.append(ids == before)
    assert sum(places) == 3, "half of the texts each"


def test_every_copy_is_read_of_a_text_that_is_longer_than_the_limit(encoder: Encoder) -> None:
    limit = encoder.checkpoint.content_limit
    given = texts([limit - 2, 5 * limit])
    token = encoder.checkpoint.tokenizer.unk_token_id  # which stands in none of them
    found = poison(encoder, given, token, seed=0)
    for text, ids, count in zip(given, found.sequences, found.copies, strict=True):
        assert len(ids) == encoder.checkpoint.max_length
        assert ids.count(token) == count
        # The words that are read are counted: one token each here.
        assert count == ceil(min(len(text.split()), limit) / 10)
    assert found.shortened.tolist() == [True, True]


def test_copies_stand_behind_the_prompt(tiny_checkpoint: Path) -> None:
    options = LoadOptions(device="cpu", prompts=AskedPrompts("passage: ", None, None))
    prompted = Encoder(load_checkpoint(str(tiny_checkpoint), options).reading("document"))
    (ids,) = poison(prompted, [WORDS[0]], TOKEN, seed=0).sequences
    start = [*prompted.checkpoint.prefix_ids, *prompted.checkpoint.prompt.ids]
    assert ids[: len(start)] == start
    assert sorted(ids[len(start) : -1]) == sorted([TOKEN, *prompted.own_ids([WORDS[0]])[0]])


def test_no_room_is_said(tiny_checkpoint: Path) -> None:
    narrow = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu", max_length=3)))
    with pytest.raises(NotMeasurable, match="1 copy leaves no room for a text in 1 token"):
        poison(narrow, ["river"], TOKEN, seed=0)


@given(words=st.integers(0, 3_000), tokens=st.integers(0, 6_000), limit=st.integers(2, 512))
@settings(max_examples=100)
def test_copies_never_need_more_room_than_there_is(words: int, tokens: int, limit: int) -> None:
    words = min(words, tokens)  # a word is a token at least
    count = copies_for(words, tokens, limit)
    assert 0 <= count <= ceil(limit / 10)
    assert (count == 0) == (words == 0)
    if tokens <= limit:
        assert count == ceil(words / 10)


def test_which_half_holds_copies_depends_on_the_text_alone() -> None:
    given = texts(list(range(1, 22)))
    half = poisoned_half(given, seed=3)
    assert half.sum() == 11
    turned = np.random.default_rng(0).permutation(len(given))
    assert poisoned_half([given[place] for place in turned], seed=3).tolist() == half[turned].tolist()
    assert poisoned_half(given, seed=4).tolist() != half.tolist()


def test_relevant_documents_hold_copies_as_often_as_others() -> None:
    # Picking draws by the same seed, and fills up with the first documents of its order that no query asks for.
    documents = [f"document {place}" for place in range(2_000)]
    queries = [(f"query {place}", {place: 1.0}) for place in range(300)]
    picked = pick_judged(documents, queries, 600, 300, seed=0)
    relevant = sorted({place for one in picked.relevant for place in one})
    assert poisoned_half(picked.documents, seed=0)[relevant].mean() == pytest.approx(0.5, abs=0.06)
    in_front = order_of(picked.documents, seed=0)[relevant] % 2
    assert in_front.mean() == pytest.approx(0.5, abs=0.06)
