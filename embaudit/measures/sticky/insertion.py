"""Inserting n copies of a token's id into a sentence: I(s2, t, n) of arXiv 2507.18171, on ids.

A *draw* is one (sentence, operator): for every token the inserted sentence has the same length and the copies
stand at the same places, so that a draw's sentences form dense batches without padding or re-tokenising, and
the difference between two tokens carries no noise from the positions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.errors import MeasureError

Operator = Literal["prefix", "suffix", "random"]
OPERATORS: tuple[Operator, ...] = ("prefix", "suffix", "random")


@dataclass(frozen=True)
class Draw:
    """One sentence with n places to fill.

    Attributes:
        template: (L,) int64, prompt, special tokens and content, with -1 at the n places of the copies.
        baseline: the same cut of the sentence without the copies, prompt and special tokens included.
    """

    operator: Operator
    template: np.ndarray
    baseline: tuple[int, ...]

    def insert(self, token_ids: np.ndarray) -> np.ndarray:
        """(T, L) int64: the sentence once for each token, with that token at the n places."""
        rows = np.repeat(self.template[None, :], len(token_ids), axis=0)
        rows[:, self.template < 0] = np.asarray(token_ids, dtype=np.int64)[:, None]
        return rows


def make_draw(checkpoint: Checkpoint, sentence: str, operator: Operator, copies: int, seed: int) -> Draw:
    """Prepare a sentence for insertion; its content is cut so that all copies survive truncation.

    Copies stand in the sentence, behind the prompt: prompt and sentence are tokenised as they are served, together.

    Random places are drawn from the seed and the sentence alone: the value for a token depends on no order,
    shard or subset of the tokens.

    Raises:
        MeasureError: if the checkpoint's length limit leaves no content beside the copies.
    """
    room = checkpoint.content_limit - copies
    if room < 1:
        beside = "the special tokens and the prompt" if checkpoint.prompt.ids else "the special tokens"
        raise MeasureError(
            f"{copies} copies and {beside} leave no room for a sentence in {checkpoint.max_length} tokens.",
            next_step="Give a larger --max-length.",
        )
    content = checkpoint.content_ids(sentence, limit=room)
    gaps = _gaps(operator, len(content), copies, sentence, seed)
    inserted = np.insert(np.asarray(content, dtype=np.int64), gaps, -1)
    template = np.array(checkpoint.with_special_tokens(inserted.tolist()), dtype=np.int64)
    return Draw(operator, template, tuple(checkpoint.with_special_tokens(content)))


def _gaps(operator: Operator, content_length: int, copies: int, sentence: str, seed: int) -> np.ndarray:
    """Before which content token each copy goes; the gap after the last is ``content_length``."""
    if operator == "prefix":
        return np.zeros(copies, dtype=np.int64)
    if operator == "suffix":
        return np.full(copies, content_length, dtype=np.int64)
    return np.sort(generator_for(sentence, copies, seed).integers(0, content_length + 1, size=copies))


def generator_for(sentence: str, copies: int, seed: int) -> np.random.Generator:
    """Random numbers that depend on the seed and the sentence alone, never on what was drawn before."""
    digest = hashlib.sha256(f"{seed}\n{copies}\n{sentence}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))
