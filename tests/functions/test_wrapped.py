"""A function that is asked or read otherwise is asked anew where the one that it wraps is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import Answers, AsDocuments, EmbeddingFunction, WrappedFunction
from embaudit.questions.parity.requested import FirstDimensions


class Kept(EmbeddingFunction):
    """Gives ones again, which another function gave."""

    name = "kept"

    def __init__(self, source: EmbeddingFunction | None = None) -> None:
        self.source = source

    @property
    def live(self) -> EmbeddingFunction:
        return self.source or self

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        return Answers(np.full((len(texts), 4), 1.0 if self.source else 2.0), {})


@pytest.mark.parametrize("wrap", [AsDocuments, lambda function: FirstDimensions(function, 2)])
def test_what_is_asked_anew_is_not_what_was_kept(wrap: Callable[[EmbeddingFunction], WrappedFunction]) -> None:
    wrapped = wrap(Kept(Kept()))
    assert set(wrapped.encode(["a"]).vectors.ravel()) == {1.0}
    assert set(wrapped.live.encode(["a"]).vectors.ravel()) == {2.0}
    assert wrapped.typed == "kept"
