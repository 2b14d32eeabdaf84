"""Caches token ids by word: a few thousand words make up most texts.

Exact only for BERT-type tokenizers. These tokenise the pieces between spaces (U+0020) independently: cleaning, accents,
case and Chinese characters are handled character by character, and the pre-tokenizer splits at all whitespace. Others
(byte-level BPE, SentencePiece) make the space part of the following token.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_WORDS = 200_000
# Longer words are URLs and noise, which rarely recur.
MAX_LENGTH = 30


def splits_at_spaces(backend: Tokenizer) -> bool:
    """Whether a text's ids are the concatenated ids of its words."""
    said: dict[str, Any] = json.loads(backend.to_str())
    normalizer = said["normalizer"] or {}
    # do_lower_case of sentence-transformers adds a normalizer before the declared one.
    steps = normalizer.get("normalizers", [normalizer])
    return (
        (said["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
        and {step.get("type") for step in steps} <= {"Lowercase", "BertNormalizer"}
        and not any(" " in added["content"] for added in said["added_tokens"])
    )


class WordEncoder:
    """Texts to token ids, encoding each cached word once.

    Args:
        encode: a tokenizer for which ``splits_at_spaces`` holds.
    """

    def __init__(self, encode: Callable[[list[str]], list[list[int]]]) -> None:
        self._encode = encode
        self._known: dict[str, list[int]] = {}

    def __call__(self, texts: list[str]) -> list[list[int]]:
        split = [text.split(" ") for text in texts]
        if len(self._known) > MAX_WORDS:
            self._known.clear()
        # Pass the dict, not its keys view: set.difference iterates over the latter.
        new = list(set().union(*split).difference(self._known))
        found = dict(zip(new, self._encode(new), strict=True)) if new else {}
        self._known.update(found)
        ids = self._known.__getitem__
        encoded = [list(chain.from_iterable(map(ids, row))) for row in split]
        for word in found:
            if len(word) > MAX_LENGTH:
                del self._known[word]
        return encoded
