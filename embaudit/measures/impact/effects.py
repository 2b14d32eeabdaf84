"""What tokens in texts do to a score: the change from clean texts, and how far it is beyond that of ordinary tokens.

For arm a with tokens t of a set T_a, s(t) a task's score with t in the texts and s(0) with none:

    score_a = mean over T_a of s(t);   change_a = score_a − s(0);   beyond_a = score_a − score_ordinary

Intervals are paired (``embaudit.downstream.paired``); the tokens of an arm are taken as given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from embaudit.downstream.paired import Estimate, PairedScores
from embaudit.downstream.task import Scored
from embaudit.measures.impact.arms import ORDINARY

Share = Literal["half", "all"]
# What held copies: an arm of tokens, and how many of the texts.
Cell = tuple[str, Share]


@dataclass(frozen=True)
class Effect:
    """An arm, or one of its tokens.

    Attributes:
        beyond: the change beyond that of ordinary tokens; None for these themselves.
    """

    score: float | None
    change: Estimate
    beyond: Estimate | None = None


@dataclass(frozen=True)
class CellEffects:
    """Of an arm, the mean over its tokens and each token."""

    arm: Effect
    tokens: tuple[Effect, ...]


def clean_and_poisoned(
    task: Scored,
    clean: np.ndarray,
    poisoned: Mapping[Cell, Sequence[np.ndarray]],
    resamples: int,
    seed: int,
) -> tuple[float | None, dict[Cell, CellEffects]]:
    """The score with clean texts, and the effects of every cell.

    Args:
        clean: the task's outcomes with clean texts.
        poisoned: of each cell the outcomes with each of its tokens.
    """
    paired = PairedScores(
        task, [clean, *(outcome for tokens in poisoned.values() for outcome in tokens)], resamples, seed
    )
    places: dict[Cell, list[int]] = {}
    for cell, tokens in poisoned.items():
        start = 1 + sum(map(len, places.values()))
        places[cell] = list(range(start, start + len(tokens)))

    def effect(of: list[int], cell: Cell) -> Effect:
        found = Effect(paired.score(of), paired.difference(of, [0]))
        ordinary = places.get((ORDINARY, cell[1]))
        if cell[0] == ORDINARY or not ordinary:
            return found
        return replace(found, beyond=paired.difference(of, ordinary))

    return paired.score([0]), {
        cell: CellEffects(effect(own, cell), tuple(effect([one], cell) for one in own)) for cell, own in places.items()
    }
