"""Which rows of a corpus are read: so many of them, drawn at random by a seed and by what they say, or the first.

The first rows of a source are no sample of it. An article's sentences follow one another, passages stand by query and
labelled texts by class: an estimate from them is off, and its interval too narrow.

A row's place in the draw depends on the seed and its own text alone. So every checkpoint reads the same texts, a
smaller draw is part of a larger one, the order of a file does not matter, and a source can be drawn from while it
streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Literal

from pydantic import BaseModel, ConfigDict

from embaudit.keys import KEY_DIGITS

How = Literal["random", "first"]


class Draw(BaseModel):
    """So many rows of a corpus.

    Attributes:
        seed: that draws them; None: the first ones, in the order of the source.
    """

    model_config = ConfigDict(frozen=True)

    rows: int
    seed: int | None = None

    @classmethod
    def of(cls, wanted: int, rows: int, how: How, seed: int) -> Draw:
        """Of ``rows`` rows as many as are ``wanted``; where that is all of them, no value depends on the seed."""
        return cls(rows=min(wanted, rows), seed=seed if how == "random" and wanted < rows else None)

    def places(self, texts: Sequence[str]) -> list[int]:
        """The places of the drawn rows, ascending.

        Args:
            texts: what each row of the corpus says.
        """
        if self.seed is None:
            return list(range(min(self.rows, len(texts))))
        return sorted(content_order(texts, self.seed)[: self.rows])


def content_order(texts: Sequence[str], seed: int) -> list[int]:
    """The places of texts in an order drawn by the seed and the texts alone."""
    keys = [rank(text, seed) for text in texts]
    return sorted(range(len(texts)), key=lambda place: (keys[place], place))


def rank(text: str, seed: int) -> str:
    """Where a text stands in the order of a seed, as 16 hex digits: the rows of lowest rank are drawn first."""
    # ``content_key(seed=seed, text=text)``, three times as fast: millions of rows may stream by.
    return sha256(f'{{"seed":{seed},"text":{encode_basestring(text)}}}'.encode()).hexdigest()[:KEY_DIGITS]


def pair_text(first: str, second: str) -> str:
    """What a pair says, to be drawn by."""
    return f"{first}\n{second}"
