"""What clients count texts in, and the pieces that they cut them into: each is encoded, and their vectors averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from embaudit.checkpoint.tokenizer import NO_LIMIT

# What is sent of a piece: text, or token ids; None if the server refuses it.
Content = str | tuple[int, ...] | None


@dataclass(frozen=True)
class Unit:
    """Characters, words, or the tokens of a vocabulary.

    Attributes:
        name: of several.
        split: a text's units.
        join: what is sent of some of them.
        gives_ids: whether that is token ids, which no tokenizer reads any more.
        is_bare: whether the server leaves such ids without special tokens.
    """

    name: str
    split: Callable[[str], Sequence[Any]]
    join: Callable[[Sequence[Any]], Content]
    gives_ids: bool = False
    is_bare: bool = False


CHARACTERS = Unit("characters", str, str)
WORDS = Unit("words", lambda text: text.split(" "), " ".join)


@dataclass(frozen=True)
class CutPieces:
    """How a client cuts a text.

    Attributes:
        size: units per piece.
        overlap: units that a piece shares with the one before.
        runs_on: whether pieces go on after one has reached the text's end: as many as there are steps.
        only_last: whether the vector of the last piece takes the place of all.
    """

    unit: Unit = CHARACTERS
    size: int = NO_LIMIT
    overlap: int = 0
    runs_on: bool = False
    only_last: bool = False

    @property
    def are_averaged(self) -> bool:
        return self.size < NO_LIMIT and not self.only_last

    def of(self, text: str) -> list[tuple[Content, int]]:
        """What is sent of each piece, and its units. An empty text is sent as it is."""
        units = self.unit.split(text)
        if not len(units):
            return [("", 1)]
        if len(units) <= self.size and not self.overlap:
            return [(self.unit.join(units), 1)]
        end = len(units) if self.runs_on else max(1, len(units) - self.overlap)
        pieces = [units[start : start + self.size] for start in range(0, end, self.size - self.overlap)]
        return [(self.unit.join(piece), len(piece)) for piece in (pieces[-1:] if self.only_last else pieces)]


WHOLE = CutPieces()
