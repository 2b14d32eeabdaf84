"""Token ids by whole words, remembered: a few thousand words make up most texts.

Exact for tokenizers of BERT's kind alone. What these make of a text is what they make of each piece between its spaces
(U+0020), one after the other: cleaning, accents, case and Chinese characters are handled sign by sign, and the
pre-tokenizer splits at every white space. Others (byte-level BPE, SentencePiece) write the space into the token behind
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_WORDS = 200_000
# Longer ones are addresses and noise, which do not come again.
MAX_LENGTH = 30


def splits_at_spaces(backend: Tokenizer) -> bool:
    """Whether a tokenizer gives a text the ids of its words, one after the other."""
    said: dict[str, Any] = json.loads(backend.to_str())
    normalizer = said["normalizer"] or {}
    # do_lower_case of sentence-transformers stands before the declared one.
    steps = normalizer.get("normalizers", [normalizer])
    return (
        (said["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
        and {step.get("type") for step in steps} <= {"Lowercase", "BertNormalizer"}
        and not any(" " in added["content"] for added in said["added_tokens"])
    )


class WordEncoder:
    """Texts to token ids, each word encoded once while it is remembered.

    Args:
        encode: the tokenizer, which ``splits_at_spaces``.
    """

    def __init__(self, encode: Callable[[list[str]], list[list[int]]]) -> None:
        self._encode = encode
        self._known: dict[str, list[int]] = {}

    def __call__(self, texts: list[str]) -> list[list[int]]:
        split = [text.split(" ") for text in texts]
        if len(self._known) > MAX_WORDS:
            self._known.clear()
        # Of a dict, and not of its keys: a set less keys goes over all of these.
        new = list(set().union(*split).difference(self._known))
        found = dict(zip(new, self._encode(new), strict=True)) if new else {}
        self._known.update(found)
        ids = self._known.__getitem__
        encoded = [list(chain.from_iterable(map(ids, row))) for row in split]
        for word in found:
            if len(word) > MAX_LENGTH:
                del self._known[word]
        return encoded
