"""A checkpoint whose vectors are changed on the way: every way that a report has to tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.embedders.checkpoint import CheckpointFunction

CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "itself": lambda rows: rows,
    "longer": lambda rows: 3 * rows,
    "cut": lambda rows: rows[:, :16],
    "one dimension": lambda rows: rows[:, :1],
    "wider": lambda rows: np.pad(rows, ((0, 0), (0, 3))),
    "turned": lambda rows: rows[:, ::-1].copy(),
    "zeros": lambda rows: 0 * rows,
    "NaN": lambda rows: rows * np.nan,
    "half precision": lambda rows: rows.astype(np.float16).astype(np.float32),
}
# Of a function whose inside nobody sees.
NO_INSIDE = {"checkpoint": None, "identity": ""}


class Changed(CheckpointFunction):
    """The checkpoint behind something that changes its vectors, of which other things may be known."""

    def __init__(self, checkpoint: Checkpoint, how: str, /, **facts: Any) -> None:
        super().__init__(checkpoint)
        self.inside, self.change = CheckpointFunction(checkpoint), CHANGES[how]
        for name, value in facts.items():
            setattr(self, name, value)

    def alike(self, role: TextKind) -> TextKind:
        return self.inside.alike(role)

    def encode(self, *given: Any, **more: Any) -> Any:
        found = self.inside.encode(*given, **more)
        return replace(found, vectors=self.change(found.vectors))
