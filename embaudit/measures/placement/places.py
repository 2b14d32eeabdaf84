"""Positions of n copies of a token in a text of L tokens: n of its L + 1 gaps, with repetition.

Gap 0 is before the first token, gap L after the last; special tokens and prompt are outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.measures.sticky.insertion import SentenceDraw, generator_for

# Sentence-final punctuation in several scripts.
MARKS = (".", "!", "?", "…", "。", "！", "？", "।", "؟", "۔")


@dataclass(frozen=True)
class PlacedText:
    """A text between prompt and special tokens, cut so that all copies survive.

    Attributes:
        ends: (E,) the beginning and the gap after each sentence, ascending.
    """

    head: np.ndarray
    content: np.ndarray
    tail: np.ndarray
    ends: np.ndarray

    @property
    def gaps(self) -> int:
        return len(self.content) + 1

    def filled(self, gaps: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """The text with copies: row i has token i in its gaps.

        Args:
            gaps: (R, n), ascending in each row.
            token_ids: (R,).

        Returns:
            (R, len(head) + L + n + len(tail)) int64.
        """
        rows, n = gaps.shape
        found = np.repeat(token_ids[:, None], len(self.content) + n, axis=1)
        is_copy = np.zeros(found.shape, dtype=bool)
        # A copy comes after the content before its gap, and after earlier copies.
        np.put_along_axis(is_copy, gaps + np.arange(n), True, axis=1)
        found[~is_copy] = np.tile(self.content, rows)
        around = (np.tile(self.head, (rows, 1)), found, np.tile(self.tail, (rows, 1)))
        return np.concatenate(around, axis=1).astype(np.int64)


def text_of(checkpoint: Checkpoint, draw: SentenceDraw) -> PlacedText:
    """The text of a draw."""
    marked = checkpoint.with_special_tokens([-1])
    start, behind = marked.index(-1), len(marked) - 1 - marked.index(-1)
    ids = np.array(draw.baseline, dtype=np.int64)
    content = ids[start : len(ids) - behind]
    words = [checkpoint.tokenizer.decode([token]).strip() for token in content.tolist()]
    ends = {0, len(content), *(place + 1 for place, word in enumerate(words) if word.endswith(MARKS))}
    return PlacedText(ids[:start], content, ids[len(ids) - behind :], np.array(sorted(ends)))


def fixed_places(text: PlacedText, copies: int) -> dict[str, np.ndarray]:
    """Strategy -> (copies,) gaps, the same for every token."""
    last = text.gaps - 1
    dealt = np.linspace(0, len(text.ends) - 1, copies).round().astype(np.int64)
    return {
        "prefix": np.zeros(copies, dtype=np.int64),
        "suffix": np.full(copies, last),
        "interleaved": np.linspace(0, last, copies + 2)[1:-1].round().astype(np.int64),
        "sentence_ends": text.ends[dealt],
    }


def random_places(text: PlacedText, copies: int, tries: int, seed: int) -> np.ndarray:
    """(tries, copies) random gaps that depend only on the seed and the text."""
    generator = generator_for(" ".join(map(str, text.content.tolist())), copies, seed)
    return np.sort(generator.integers(0, text.gaps, size=(tries, copies)), axis=1)


def rotation_places(text: PlacedText, draw: SentenceDraw) -> np.ndarray:
    """(n,) gaps of the copies in a draw of the search for sticky tokens."""
    inside = draw.template[len(text.head) : len(draw.template) - len(text.tail)]
    is_copy = inside < 0
    gaps: np.ndarray = np.cumsum(~is_copy)[is_copy]
    return gaps
