"""Texts that a search asks a function for: each distinct one once, and no more than are allowed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.encode import encode_rows
from embaudit.questions.vectors.forms import StoredForm


class AskedTexts:
    """Asks for distances of texts to a row's vector, each distinct text once, and no more than are allowed."""

    def __init__(self, function: EmbeddingFunction, form: StoredForm, most: int) -> None:
        self._function, self._form = function, form
        self.left = self.most = most
        self._known: dict[str, np.ndarray] = {}
        self._is_folded = False

    def learn_what_is_read_alike(self) -> None:
        """Whether case and white space make no difference: texts that differ by these are asked for once then."""
        one, other = self.vectors(["The first word\n\nAnd a Second", "the first word and a second"])
        self._is_folded = bool(np.isfinite(one).all() and np.allclose(one, other, rtol=0, atol=1e-7))

    def as_read(self, text: str) -> str:
        return " ".join(text.lower().split()) if self._is_folded else text

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        # A text that is read as another one is asked for as it is written first: special tokens have a case.
        written = {self.as_read(text): text for text in reversed(texts)}
        new = [one for one in dict.fromkeys(map(self.as_read, texts)) if one not in self._known][: self.left]
        if new:
            self.left -= len(new)
            self._known |= zip(new, encode_rows(self._function, [written[one] for one in new]), strict=True)
        width = len(next(iter(self._known.values())))
        return np.array([self._known.get(self.as_read(text), np.full(width, np.nan)) for text in texts])

    def distances(self, texts: Sequence[str | None], vectors: np.ndarray) -> np.ndarray:
        """(n,) 1 − cosine; 2 for a text that there is none of, or that may not be asked for any more."""
        if not texts or (not self._known and self.left <= 0):
            return np.full(len(texts), 2.0)
        found = self._form.distance(self.vectors([text or "" for text in texts]), vectors)
        return np.where([text is None for text in texts], 2.0, np.nan_to_num(found, nan=2.0))
