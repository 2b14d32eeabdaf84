"""Which rows of a corpus are read: a random draw, determined by a seed and the rows' content, or the first ones.

The first rows of a source are not a random sample. Sentences follow one another in an article, passages are grouped by
query and labelled texts by class, so an estimate from the first rows is biased and its interval too narrow.

Whether a row is drawn depends only on the seed and its own text. So every checkpoint reads the same texts, a smaller
draw is a subset of a larger one, the order of a file does not matter, and a stream can be drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Literal

from pydantic import BaseModel, ConfigDict

from embaudit.system.installed import KEY_DIGITS

How = Literal["random", "first"]


class Draw(BaseModel):
    """How many rows of a corpus are read, and how they are chosen.

    Attributes:
        seed: of the random draw; None: the first rows, in source order.
    """

    model_config = ConfigDict(frozen=True)

    rows: int
    seed: int | None = None

    @classmethod
    def of(cls, wanted: int, rows: int, how: How, seed: int) -> Draw:
        """A draw of ``wanted`` out of ``rows`` rows; no seed if that is all of them, so that no value depends on it."""
        return cls(rows=min(wanted, rows), seed=seed if how == "random" and wanted < rows else None)

    def places(self, texts: Sequence[str]) -> list[int]:
        """Indices of the drawn rows, ascending.

        Args:
            texts: the text of each row of the corpus.
        """
        if self.seed is None:
            return list(range(min(self.rows, len(texts))))
        return sorted(content_order(texts, self.seed)[: self.rows])


def content_order(texts: Sequence[str], seed: int) -> list[int]:
    """Indices of the texts in a random order that depends only on the seed and the texts."""
    keys = [rank(text, seed) for text in texts]
    return sorted(range(len(texts)), key=lambda place: (keys[place], place))


def rank(text: str, seed: int) -> str:
    """A text's rank in the order given by a seed, as 16 hex digits; the lowest ranks are drawn first."""
    # Equals ``content_key(seed=seed, text=text)`` but is three times as fast: there may be millions of rows.
    return sha256(f'{{"seed":{seed},"text":{encode_basestring(text)}}}'.encode()).hexdigest()[:KEY_DIGITS]


def pair_text(first: str, second: str) -> str:
    """The text by which a pair is ranked."""
    return f"{first}\n{second}"
