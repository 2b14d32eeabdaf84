"""Long texts in pieces, as text: what a piece holds is what somebody would store who cuts documents before encoding.

A piece is a run of whole sentences with at most so many tokens. A sentence that is longer is cut between words (its
beginning fills the piece before), and a word, or a script without spaces, between characters. Pieces do not overlap,
and only the spaces around them are lost.
Tokens are counted part by part, which is exact where a tokenizer never joins words. One that joins a space to the word
behind it has one token more for each part: pieces are then shorter, not longer (GPT-2's: .90 of 256 tokens, .58 of 32).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

# Own tokens of each text, as ``Checkpoint.own_ids`` gives them.
Tokenized = Callable[[Sequence[str]], list[list[int]]]
# From coarse to fine, each with the spaces after it: together, the parts are the text.
SENTENCE = re.compile(r"\s*.+?(?:[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]|\n|\Z)\s*", re.DOTALL)
WORD = re.compile(r"\s*\S+\s*")
LEVELS = (SENTENCE, WORD)
# With a larger share of unknown tokens, ids say little of what their text says.
UNKNOWN = 0.5


def pieces_of(text: str, size: int, tokenized: Tokenized) -> list[str]:
    """The pieces of at most ``size`` tokens; a text that is no longer is its only piece, unchanged."""
    if not text.strip() or len(tokenized([text])[0]) <= size:
        return [text]
    pieces: list[str] = []
    tokens = size
    for part, length in _parts(text, size, tokenized, 0):
        if pieces and tokens + length <= size:
            pieces[-1] += part
            tokens += length
        else:
            pieces.append(part)
            tokens = length
    return [piece.strip() for piece in pieces if piece.strip()]


def start_of(text: str, size: int, tokenized: Tokenized) -> list[int]:
    """The first ``size`` tokens of a text, or up to the last sentence's end among them if at least half are left."""
    ids = tokenized([text])[0]
    if len(ids) <= size:
        return ids
    first = tokenized([pieces_of(text, size, tokenized)[0]])[0]
    return first[:size] if len(first) >= size / 2 else ids[:size]


def is_written(ids: Sequence[int], unknown: int | None) -> bool:
    """Whether at least half of a text's tokens are known ones; False for a text without tokens."""
    return len(ids) > 0 and sum(token == unknown for token in ids) <= UNKNOWN * len(ids)


def best_of(grades: Mapping[int, float]) -> int:
    """The place of the document with the highest grade, the first of several."""
    return min(grades, key=lambda place: (-grades[place], place))


def _parts(text: str, size: int, tokenized: Tokenized, level: int) -> Iterator[tuple[str, int]]:
    """Consecutive parts of at most ``size`` tokens, with their numbers of tokens."""
    halves = [text[: len(text) // 2], text[len(text) // 2 :]]
    parts = LEVELS[level].findall(text) if level < len(LEVELS) else halves
    for part, ids in zip(parts, tokenized(parts), strict=True):
        if len(ids) <= size or len(part) == 1:
            yield part, len(ids)
        else:
            yield from _parts(part, size, tokenized, level + 1)
