"""Pieces of a text, from half of what the function reads down to a sentence or two, and where they stand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import EmbeddingFunction

# Words of a piece where nobody knows how much is read, and the fewest of a text that is cut.
WORDS, FEWEST = 100, 40
# The shortest pieces, in words: what answers may be one sentence.
SHORTEST = 12
# Pieces of a text at most, of the longest and of each shorter size; of a longer text, pieces are longer.
MOST, MOST_SHORT = 60, 120


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


def read_of(function: EmbeddingFunction, text: str, role: TextKind | None = None) -> ReadOfText:
    """Of a text as it is, or in a role, whose prompt takes a part of what is read."""
    checkpoint = function.checkpoint
    if checkpoint is None:
        return ReadOfText(None, function.limit)
    checkpoint = checkpoint if role is None else checkpoint.reading(role)
    limit = checkpoint.content_limit if function.limit is not None else None
    return ReadOfText(len(checkpoint.own_ids([text])[0]), limit)


def pieces_of(function: EmbeddingFunction, text: str) -> list[TextPiece]:
    """Windows of words that overlap by half, the longest first, each size half of the one before; none of a short text.

    A sentence that answers is a small part of a long piece, and may not be what its vector says.
    """
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
    windows = list(_windows(len(words), size))
    while (size := size // 2) >= SHORTEST and 2 * len(words) <= MOST_SHORT * size:
        windows += _windows(len(words), size)
    tokens = _tokens_before(function, words, [start for start, _ in windows])
    return [
        TextPiece(
            " ".join(words[start:end]),
            start,
            end,
            before,
            None if before is None else read.limit is not None and before >= read.limit,
        )
        for (start, end), before in zip(windows, tokens, strict=True)
    ]


def _windows(words: int, size: int) -> Iterator[tuple[int, int]]:
    starts = list(range(0, max(words - size, 0) + 1, max(size // 2, 1)))
    if starts[-1] + size < words:
        starts.append(words - size)
    yield from ((start, start + size) for start in starts)


def _tokens_before(function: EmbeddingFunction, words: list[str], starts: list[int]) -> list[int | None]:
    if function.checkpoint is None:
        return [None] * len(starts)
    distinct = sorted(set(starts))
    prefixes = [" ".join(words[:start]) for start in distinct]
    counts = dict(zip(distinct, map(len, function.checkpoint.own_ids(prefixes)), strict=True))
    return [counts[start] for start in starts]
