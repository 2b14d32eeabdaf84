"""Encodes the texts of rows; a text that the checkpoint cannot encode has no vector, and stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.errors import MeasureError


def encode_rows(
    encoder: Encoder, texts: Sequence[str], progress: Callable[[int], None] = lambda done: None
) -> np.ndarray:
    """(n, D) float32 vectors; NaN for texts without tokens, or of which the checkpoint gives NaN."""
    distinct = list(dict.fromkeys(texts))
    place = {text: one for one, text in enumerate(distinct)}
    try:
        vectors = encoder.encode_texts(distinct, progress)
    except MeasureError:
        vectors = np.full((len(distinct), encoder.checkpoint.dimension), np.nan, dtype=np.float32)
        for one, text in enumerate(distinct):
            try:
                vectors[one] = encoder.encode_texts([text])[0]
            except MeasureError:
                continue
    return np.asarray(vectors[[place[text] for text in texts]])
