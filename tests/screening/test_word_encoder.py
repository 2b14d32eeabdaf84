"""Ids by remembered words: the same as the tokenizer's own, whatever the text, and only where that can be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.remedies.screening import density
from embaudit.remedies.screening.density import WordEncoder, encoder_of_tokens, splits_at_spaces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What white space, case, accents, scripts and special tokens can do where two words meet.
AWKWARD = (
    *" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u2028\u3000\u200b\u200d\ufeff\x00\x07",
    *"aZßİıΣς\u0301\u0327é中漢ｶ\U0001f600\U0001d400ⁱ1.,-'[]#",
    *("[MASK]", "[CLS]", "[PAD]", "##ing", "river", "the", "ﬁ", "x" * 101),
)
TEXTS = st.lists(st.one_of(st.sampled_from(AWKWARD), st.just(" "), st.characters()), max_size=30).map("".join)


def plain(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    return [one.ids for one in tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=False)]


def as_loaded(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """As checkpoints are loaded; some tests of this process, and some tokenizer files, leave padding set."""
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm", "bert-base-uncased", "bert-base-cased"])
def test_words_one_by_one_give_what_the_whole_text_gives(
    real_tokenizer: Callable[[str], PreTrainedTokenizerBase], name: str
) -> None:
    tokenizer = as_loaded(real_tokenizer(name))
    encode = encoder_of_tokens(tokenizer)
    assert isinstance(encode, WordEncoder)

    @settings(max_examples=150)
    @given(st.lists(TEXTS, min_size=1, max_size=5))
    def check(texts: list[str]) -> None:
        assert encode(texts) == plain(tokenizer, texts)

    check()


def test_real_texts_come_out_the_same(real_tokenizer: Callable[[str], PreTrainedTokenizerBase], shared: Path) -> None:
    tokenizer = as_loaded(real_tokenizer("bert-base-uncased"))
    lines = (shared / "data/wikipedia/wiki1m_sample.txt").read_text(encoding="utf-8").split("\n")[:4_000]
    assert encoder_of_tokens(tokenizer)(lines) == plain(tokenizer, lines)


@pytest.mark.parametrize("name", ["gpt2", "roberta-base", "t5-small", "albert", "clip"])
def test_other_kinds_are_given_whole_texts(real_tokenizer: Callable[[str], PreTrainedTokenizerBase], name: str) -> None:
    tokenizer = as_loaded(real_tokenizer(name))
    assert not splits_at_spaces(tokenizer.backend_tokenizer)
    texts = ["The river  was\told.", " [MASK] working", ""]
    assert encoder_of_tokens(tokenizer)(texts) == plain(tokenizer, texts)


def test_an_added_token_with_a_space_in_it_is_not_cut(tiny_checkpoint: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = as_loaded(AutoTokenizer.from_pretrained(tiny_checkpoint))
    assert splits_at_spaces(tokenizer.backend_tokenizer)
    tokenizer.add_tokens(["river stone"])
    assert encoder_of_tokens(tokenizer)(["a river stone b"]) == plain(tokenizer, ["a river stone b"])


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def encode(texts: list[str]) -> list[list[int]]:
        asked.extend(texts)
        return [[len(text)] for text in texts]

    monkeypatch.setattr(density, "MAX_WORDS", 3)
    encoder = WordEncoder(encode)
    assert encoder(["a bb a", "ccc"]) == [[1, 2, 1], [3]]
    assert encoder(["a bb"]) == [[1, 2]]
    assert sorted(asked) == ["a", "bb", "ccc"]
    long = "x" * 31
    assert encoder([f"{long} {long}"]) == [[31, 31]]
    assert encoder([long]) == [[31]]
    assert asked.count(long) == 2
    encoder(["d"])
    assert encoder(["a"]) == [[1]]
    assert asked.count("a") == 2
