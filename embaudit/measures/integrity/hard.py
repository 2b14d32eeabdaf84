"""Hard texts of every kind with their vectors: encoded once, whoever asks."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.agreement import KINDS


class HardTexts:
    """The hard texts that have a token."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        texts = [text for some in KINDS.values() for text in some]
        return {text: ids for text, ids in zip(texts, self.encoder.tokenize(texts), strict=True) if ids}

    @property
    def texts(self) -> list[str]:
        return list(self._by_text)

    @property
    def ids(self) -> list[list[int]]:
        return list(self._by_text.values())

    @cached_property
    def vectors(self) -> np.ndarray:
        """(N, D) float32.

        Raises:
            MeasureError: if one is not finite; it is asked again whenever somebody else asks.
        """
        return self.encoder.encode_ids(self.ids)
