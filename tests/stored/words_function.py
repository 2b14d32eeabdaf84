"""A static embedding function: the mean of its words' vectors, rare words more (SIF, Arora et al. 2017)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

RARE = 3e-2


class MeanOfWords:
    """Reads words of letters; each has a direction of its own, and no two texts of different words are one.

    Args:
        texts: whose words are counted.
    """

    def __init__(self, texts: Sequence[str], dimension: int = 96, seed: int = 0) -> None:
        self._counts = Counter(word for text in texts for word in words_of(text))
        self._dimension, self._seed = dimension, seed
        self._known: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        rows = np.array(
            [
                np.sum([self.vector(word) for word in words_of(text)] or [np.ones(self._dimension)], axis=0)
                for text in texts
            ]
        )
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    def vector(self, word: str) -> np.ndarray:
        if word not in self._known:
            generator = np.random.default_rng([self._seed, *word.encode()])
            share = self._counts[word] / max(self._counts.total(), 1)
            self._known[word] = generator.normal(size=self._dimension) * RARE / (RARE + share)
        return self._known[word]

    def near(self, texts: Sequence[str], words: int = 80) -> str:
        """A text made to be near to all of these: for a sum of vectors, the gradient names the words at once."""
        centre = self.encode(texts).mean(axis=0)
        known = sorted(self._counts)
        gains = np.array([self.vector(word) @ centre for word in known])
        return " ".join(known[place] for place in np.argsort(-gains)[:words])


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
