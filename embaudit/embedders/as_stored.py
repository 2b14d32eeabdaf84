"""An embedding function whose vectors an index stores: its first dimensions, whole numbers or bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from embaudit.corpora.downstream.task import unit_rows
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

Stored = Literal["as given", "int8", "binary"]
# What an index multiplies unit vectors by before it rounds them.
INT8_SCALE = 127
STORED: dict[Stored, Callable[[np.ndarray], np.ndarray]] = {
    "as given": lambda rows: rows,
    "int8": lambda rows: np.round(unit_rows(rows) * INT8_SCALE),
    "binary": lambda rows: np.where(rows > 0, 1.0, -1.0),
}


class AsStored(EmbeddingFunction):
    """Another function's vectors as they are stored.

    Args:
        stored: how their numbers are.
        dimensions: how many of the first ones are kept; None for all.
    """

    def __init__(self, function: EmbeddingFunction, stored: Stored, dimensions: int | None = None) -> None:
        self.function, self.stored, self.kept = function, stored, dimensions
        self.knows_what(function)
        self.interface = f"{function.interface or function.kind}, stored {stored}"
        # Its content is another one, and so is its inside.
        self.dimension, self.identity, self.checkpoint = dimensions, "", None

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        answers = self.function.encode(texts, role, most=most, at_once=at_once)
        self.requests = self.function.requests
        rows = answers.vectors
        if self.kept is not None and self.kept > rows.shape[1]:
            raise UsageError(
                f"There are {rows.shape[1]} dimensions to keep, not {self.kept}.", next_step="Keep as many, or fewer."
            )
        rows = rows[:, : self.kept]
        self.dimension = rows.shape[1]
        return Answers(np.where(np.isfinite(rows), STORED[self.stored](rows), np.nan), answers.failures)

    def alike(self, role: TextKind) -> TextKind:
        return self.function.alike(role)

    def close(self) -> None:
        self.function.close()
