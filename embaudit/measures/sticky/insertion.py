"""Inserts n copies of a token's id into a sentence: I(s2, t, n) of arXiv 2507.18171, on ids.

A *draw* is one (sentence, operator): for all tokens, the resulting sequences have the same length and the copies the
same positions. So a draw's sequences form dense batches without padding or re-tokenising, and positions add no noise to
differences between tokens.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.words.errors import MeasureError

Operator = Literal["prefix", "suffix", "random"]
OPERATORS: tuple[Operator, ...] = ("prefix", "suffix", "random")


@dataclass(frozen=True)
class SentenceDraw:
    """One sentence with n positions to fill.

    Attributes:
        template: (L,) int64, prompt, special tokens and content, with -1 at the n positions of the copies.
        baseline: the same sentence, cut equally, without the copies; prompt and special tokens included.
    """

    operator: Operator
    template: np.ndarray
    baseline: tuple[int, ...]

    def insert(self, token_ids: np.ndarray) -> np.ndarray:
        """(T, L) int64: the sentence once per token, with that token at the n positions."""
        rows = np.repeat(self.template[None, :], len(token_ids), axis=0)
        rows[:, self.template < 0] = np.asarray(token_ids, dtype=np.int64)[:, None]
        return rows


def make_draw(checkpoint: Checkpoint, sentence: str, operator: Operator, copies: int, seed: int) -> SentenceDraw:
    """Prepare a sentence for insertion; its content is cut so that all copies survive truncation.

    Copies go into the sentence, after the prompt; prompt and sentence are tokenised together, as served.

    Random positions depend only on the seed and the sentence, so a token's value does not depend on the order, sharding
    or subset of tokens.

    Raises:
        MeasureError: if the checkpoint's length limit leaves no room for content.
    """
    room = checkpoint.content_limit - copies
    if room < 1:
        added = "the special tokens and the prompt" if checkpoint.prompt.ids else "the special tokens"
        raise MeasureError(
            f"{copies} copies and {added} leave no room for a sentence in {checkpoint.max_length} tokens.",
            next_step="Give a larger --max-length.",
        )
    content = checkpoint.content_ids(sentence, limit=room)
    gaps = _gaps(operator, len(content), copies, sentence, seed)
    inserted = np.insert(np.asarray(content, dtype=np.int64), gaps, -1)
    template = np.array(checkpoint.with_special_tokens(inserted.tolist()), dtype=np.int64)
    return SentenceDraw(operator, template, tuple(checkpoint.with_special_tokens(content)))


def _gaps(operator: Operator, content_length: int, copies: int, sentence: str, seed: int) -> np.ndarray:
    """The content token before which each copy goes; the gap after the last is ``content_length``."""
    if operator == "prefix":
        return np.zeros(copies, dtype=np.int64)
    if operator == "suffix":
        return np.full(copies, content_length, dtype=np.int64)
    return np.sort(generator_for(sentence, copies, seed).integers(0, content_length + 1, size=copies))


def generator_for(sentence: str, copies: int, seed: int) -> np.random.Generator:
    """A generator that depends only on seed, number of copies and sentence, never on earlier draws."""
    digest = hashlib.sha256(f"{seed}\n{copies}\n{sentence}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))
