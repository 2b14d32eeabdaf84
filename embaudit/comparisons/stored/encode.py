"""Encodes the texts of rows; a text that has no vector stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.functions.function import EmbeddingFunction

# Texts that are handed over between two words of progress.
TOGETHER = 256


def encode_rows(
    function: EmbeddingFunction, texts: Sequence[str], progress: Callable[[int], None] = lambda done: None
) -> np.ndarray:
    """(n, D) vectors of documents, each distinct one encoded once; NaN for texts of which the function has none."""
    distinct = list(dict.fromkeys(texts))
    place = {text: one for one, text in enumerate(distinct)}
    # A checkpoint's index is built by what it does with a plain text; its prompts are told by the rows that lack one.
    role: TextKind = "text" if function.checkpoint is not None else "document"
    # Of about one length, what is handed over together is hardly padded.
    order = sorted(range(len(distinct)), key=lambda one: len(distinct[one]))
    found: dict[int, np.ndarray] = {}
    for start in range(0, len(order), TOGETHER):
        some = order[start : start + TOGETHER]
        found |= zip(some, function.encode([distinct[one] for one in some], role).vectors, strict=True)
        progress(len(some))
    return np.array([found[place[text]] for text in texts])


def encode_elsewhere(function: EmbeddingFunction) -> Callable[[Sequence[str]], np.ndarray] | None:
    """The same for another process to call; None if it cannot open the function."""
    return None if function.again is None else partial(_encode_again, function.again)


def _encode_again(again: Callable[[], EmbeddingFunction], texts: Sequence[str]) -> np.ndarray:
    return encode_rows(again(), texts)
