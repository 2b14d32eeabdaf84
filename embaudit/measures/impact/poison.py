"""Inserts a token into texts, as in a poisoned or badly extracted collection (arXiv 2507.18171, §5.3).

⌈words/10⌉ copies are put before the text in half of the texts, after it in the others. The text is cut to make room, so
that all copies are read; of a text beyond the length limit, only the words that are read count. Copies are inserted as
ids, so the model reads the token itself and not what its text becomes next to a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.corpora.draw import content_order
from embaudit.words.errors import NotMeasurable

WORDS_PER_COPY = 10


@dataclass(frozen=True)
class PoisonedTexts:
    """Texts with copies.

    Attributes:
        sequences: ids of each text as the model reads them: prompt, special tokens, copies and content.
        copies: (n,) number of copies in each text; all are read.
        shortened: (n,) bool: texts that lose content that would be read without copies.
    """

    sequences: list[list[int]]
    copies: np.ndarray
    shortened: np.ndarray


def poison(encoder: Encoder, texts: Sequence[str], token_id: int, seed: int) -> PoisonedTexts:
    """Each text with copies of a token; whether they come first depends on seed and content.

    Raises:
        NotMeasurable: if the length limit leaves no room for copies.
    """
    checkpoint = encoder.checkpoint
    limit = checkpoint.content_limit
    in_front = order_of(texts, seed) % 2 == 0
    sequences, copies, shortened = [], np.empty(len(texts), dtype=np.int64), np.empty(len(texts), dtype=bool)
    for place, (text, ids) in enumerate(zip(texts, encoder.own_ids(texts), strict=True)):
        count = copies_for(len(text.split()), len(ids), limit)
        if count >= limit:
            raise NotMeasurable(f"{count} copies leave no room for a text in {limit} tokens.")
        content = checkpoint.cut(ids, limit - count)
        shortened[place] = len(content) < min(len(ids), limit)
        inserted = [token_id] * count
        sequences.append(checkpoint.with_special_tokens(inserted + content if in_front[place] else content + inserted))
        copies[place] = count
    return PoisonedTexts(sequences, copies, shortened)


def copies_for(words: int, tokens: int, limit: int) -> int:
    """⌈words/10⌉ for the words that are read: if the text exceeds the limit, proportionally fewer."""
    # In integers: a floating-point share of 250 words may be 250.00000000000003.
    return -(-words * min(tokens, limit) // (max(tokens, 1) * WORDS_PER_COPY))


def poisoned_half(texts: Sequence[str], seed: int) -> np.ndarray:
    """(n,) bool: the half of the texts that get copies if half of a collection does."""
    return order_of(texts, seed) < len(texts) / 2


def order_of(texts: Sequence[str], seed: int) -> np.ndarray:
    """(n,) the rank of each text in a random order determined by seed and content."""
    # Different from the order in which texts are sampled, where documents that are relevant to no query come first.
    order = content_order([f"copies\n{text}" for text in texts], seed)
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts))
    return ranks
