"""Severe tokens in a query or a text: what it is without them, as an audit's list names them (``embaudit filter``)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder, TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.remedies.screening.count import counts_of


@dataclass(frozen=True)
class WithoutTokens:
    """A text without its severe tokens.

    Attributes:
        tokens: as the tokenizer writes them, with how often each stands there.
        vector: (D,) of the rest.
    """

    tokens: tuple[str, ...]
    vector: np.ndarray


def without_severe(
    function: EmbeddingFunction, text: str, role: TextKind, severe: Collection[int]
) -> WithoutTokens | None:
    """None if it has none, nothing else, or nobody sees the function's tokens."""
    if function.checkpoint is None or not severe:
        return None
    reading = function.checkpoint.reading(role)
    ids = reading.content_ids(text)
    counts = counts_of(ids, severe)
    rest = [one for one in reading.own_ids([text])[0] if one not in counts]
    if not counts or not rest:
        return None
    whole = reading.with_special_tokens(reading.cut(rest, reading.content_limit))
    names = reading.tokenizer.convert_ids_to_tokens(list(counts))
    shown = tuple(f"{name!r} × {count:,}" for name, count in zip(names, counts.values(), strict=True))
    return WithoutTokens(shown, Encoder(reading).encode_ids([whole])[0])
