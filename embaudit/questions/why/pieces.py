"""Pieces of a text, half and a quarter of what the function reads, and its sentences, and where they stand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.why.mends import SENTENCE_END

# Words of a piece where nobody knows how much is read, and the fewest of a text that is cut.
WORDS, FEWEST = 100, 40
# The shortest windows, in words, and what is no sentence any more.
SHORTEST, LONGEST = 12, 60
# Pieces of a text at most, of the longest windows and of sentences; of a longer text, pieces are longer.
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
    """Windows of half and a quarter of what is read, which overlap by half, and sentences; none of a short text.

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
    windows = list(_windows(0, len(words), size))
    if size // 2 >= SHORTEST:
        windows += _windows(0, len(words), size // 2)
    windows = list(dict.fromkeys([*windows, *_sentences(text)]))
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


def _windows(start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    starts = list(range(start, max(end - size, start) + 1, max(size // 2, 1)))
    if starts[-1] + size < end:
        starts.append(end - size)
    yield from ((one, min(one + size, end)) for one in starts)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Sentences as ranges of words: short ones with the next, long ones in parts, and of a long text, more together."""
    lengths = [len(one.split()) for one in SENTENCE_END.split(text) if one.strip()]
    least = max(SHORTEST // 2, math.ceil(sum(lengths) / MOST_SHORT))
    start = end = 0
    for length in lengths:
        end += length
        if end - start > LONGEST:
            yield from _windows(start, end, max(LONGEST // 2, least))
        elif end - start < least:
            continue
        else:
            yield start, end
        start = end
    if end > start:
        yield start, end


def _tokens_before(function: EmbeddingFunction, words: list[str], starts: list[int]) -> list[int | None]:
    if function.checkpoint is None:
        return [None] * len(starts)
    distinct = sorted(set(starts))
    prefixes = [" ".join(words[:start]) for start in distinct]
    counts = dict(zip(distinct, map(len, function.checkpoint.own_ids(prefixes)), strict=True))
    return [counts[start] for start in starts]
