"""Pieces of a text, about half of what the function reads each, and where they stand."""

from __future__ import annotations

import math
from dataclasses import dataclass

from embaudit.functions.function import EmbeddingFunction

# Words of a piece where nobody knows how much is read, and the fewest of a text that is cut.
WORDS, FEWEST = 100, 40
# Pieces of a text at most; of a longer one, pieces are longer.
MOST = 60


@dataclass(frozen=True)
class TextPiece:
    """A part of a text.

    Attributes:
        start, end: of its words, from 0.
        token: how many tokens of the text stand before it; None if that is not known.
        is_behind: whether it stands wholly behind what the function reads; None if that is not known.
    """

    text: str
    start: int
    end: int
    token: int | None
    is_behind: bool | None


@dataclass(frozen=True)
class ReadOfText:
    """How much of a text a function reads.

    Attributes:
        tokens: that it has; None if that is not known.
        limit: tokens that are read of it; None if all are, or nobody knows.
    """

    tokens: int | None
    limit: int | None

    @property
    def is_cut(self) -> bool:
        return self.tokens is not None and self.limit is not None and self.tokens > self.limit


def read_of(function: EmbeddingFunction, text: str) -> ReadOfText:
    checkpoint = function.checkpoint
    if checkpoint is None:
        return ReadOfText(None, function.limit)
    limit = checkpoint.content_limit if function.limit is not None else None
    return ReadOfText(len(checkpoint.own_ids([text])[0]), limit)


def pieces_of(function: EmbeddingFunction, text: str) -> list[TextPiece]:
    """Windows of words that overlap by half; none of a short text."""
    words = text.split()
    if len(words) < FEWEST:
        return []
    read = read_of(function, text)
    size = WORDS
    if read.tokens and read.limit:
        size = max(int(len(words) * read.limit / 2 / read.tokens), FEWEST // 2)
    size = max(size, math.ceil(2 * len(words) / MOST))
    if size >= len(words):
        size = math.ceil(len(words) / 2)
    starts = list(range(0, max(len(words) - size, 0) + 1, max(size // 2, 1)))
    if starts[-1] + size < len(words):
        starts.append(len(words) - size)
    tokens = _tokens_before(function, words, starts)
    return [
        TextPiece(
            " ".join(words[start : start + size]),
            start,
            start + size,
            before,
            None if before is None else read.limit is not None and before >= read.limit,
        )
        for start, before in zip(starts, tokens, strict=True)
    ]


def _tokens_before(function: EmbeddingFunction, words: list[str], starts: list[int]) -> list[int | None]:
    if function.checkpoint is None:
        return [None] * len(starts)
    prefixes = [" ".join(words[:start]) for start in starts]
    return [len(ids) for ids in function.checkpoint.own_ids(prefixes)]
