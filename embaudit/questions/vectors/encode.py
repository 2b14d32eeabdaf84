"""Encodes the texts of rows; a text that has no vector stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import EmbeddingFunction

# Texts that are handed over between two words of progress.
TOGETHER = 256


def encode_rows(
    function: EmbeddingFunction,
    texts: Sequence[str],
    progress: Callable[[int], None] = lambda done: None,
    *,
    role: TextKind | None = None,
) -> np.ndarray:
    """(n, D) vectors of documents, each distinct one encoded once; NaN for texts of which the function has none.

    Args:
        role: what rows were encoded as; by default ``role_of_rows``.
    """
    distinct = list(dict.fromkeys(texts))
    place = {text: one for one, text in enumerate(distinct)}
    role = role or role_of_rows(function)
    # Of about one length, what is handed over together is hardly padded.
    order = sorted(range(len(distinct)), key=lambda one: len(distinct[one]))
    found: dict[int, np.ndarray] = {}
    for start in range(0, len(order), TOGETHER):
        some = order[start : start + TOGETHER]
        found |= zip(some, function.encode([distinct[one] for one in some], role).vectors, strict=True)
        progress(len(some))
    return np.array([found[place[text]] for text in texts])


def role_of_rows(function: EmbeddingFunction) -> TextKind:
    """What rows are taken to be encoded as: documents; of a checkpoint, what it is read for."""
    return "document" if function.checkpoint is None else function.checkpoint.kind


def encode_elsewhere(function: EmbeddingFunction) -> Callable[[Sequence[str]], np.ndarray] | None:
    """The same for another process to call; None if it cannot open the function."""
    return None if function.again is None else partial(_encode_again, function.again, role_of_rows(function))


def _encode_again(again: Callable[[], EmbeddingFunction], role: TextKind, texts: Sequence[str]) -> np.ndarray:
    return encode_rows(again(), texts, role=role)
