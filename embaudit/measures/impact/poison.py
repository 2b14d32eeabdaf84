"""Putting a token into texts as a poisoned or badly extracted collection holds it (arXiv 2507.18171, §5.3).

⌈words/10⌉ copies stand before or behind a text, half of the texts each. The text is cut to make room for them, so that
the copies are read whatever the length limit cuts; a text that is longer than the limit counts the words that are read.
Copies are inserted as ids: the token is what the model reads, and not what its text becomes beside a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.draw import content_order
from embaudit.errors import NotMeasurable

WORDS_PER_COPY = 10


@dataclass(frozen=True)
class Poisoned:
    """Texts with copies in them.

    Attributes:
        sequences: ids of each text as the model reads them: prompt, special tokens, copies and content.
        copies: (n,) in each; all of them are read.
        shortened: (n,) bool: texts that lose some of what is read of them without copies.
    """

    sequences: list[list[int]]
    copies: np.ndarray
    shortened: np.ndarray


def poison(encoder: Encoder, texts: Sequence[str], token_id: int, seed: int) -> Poisoned:
    """Each text with copies of a token; which stand in front hangs on the seed and what the texts say.

    Raises:
        NotMeasurable: if the checkpoint reads too few tokens to make room for copies.
    """
    checkpoint = encoder.checkpoint
    limit = checkpoint.content_limit
    in_front = order_of(texts, seed) % 2 == 0
    sequences, copies, shortened = [], np.empty(len(texts), dtype=np.int64), np.empty(len(texts), dtype=bool)
    for place, (text, ids) in enumerate(zip(texts, encoder.own_ids(texts), strict=True)):
        count = copies_for(len(text.split()), len(ids), limit)
        if count >= limit:
            raise NotMeasurable(f"{count} copies leave no room for a text in {limit} tokens.")
        content = ids[: limit - count]
        shortened[place] = len(content) < min(len(ids), limit)
        inserted = [token_id] * count
        sequences.append(checkpoint.with_special_tokens(inserted + content if in_front[place] else content + inserted))
        copies[place] = count
    return Poisoned(sequences, copies, shortened)


def copies_for(words: int, tokens: int, limit: int) -> int:
    """⌈words/10⌉ of the words that are read: of a text of more tokens than the limit, that share of them."""
    # In whole numbers: a rounded share of 250 words may be 250.00000000000003.
    return -(-words * min(tokens, limit) // (max(tokens, 1) * WORDS_PER_COPY))


def poisoned_half(texts: Sequence[str], seed: int) -> np.ndarray:
    """(n,) bool: the texts, half of them, that hold copies where half of a collection does."""
    return order_of(texts, seed) < len(texts) / 2


def order_of(texts: Sequence[str], seed: int) -> np.ndarray:
    """(n,) the rank of each text in an order drawn by the seed and by what the texts say."""
    # Not the order that texts are picked in: there the documents that no query asks for come first.
    order = content_order([f"copies\n{text}" for text in texts], seed)
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts))
    return ranks
