"""Effects of tokens in texts on a score: the change from clean texts, and from ordinary tokens.

For arm a with a set T_a of tokens, s(t) a task's score with t in the texts and s(0) without:

    score_a = mean over T_a of s(t);   change_a = score_a − s(0);   beyond_a = score_a − score_ordinary

Intervals are paired (``embaudit.corpora.downstream.paired``) and treat the tokens of an arm as fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from embaudit.corpora.downstream.paired import PairedScores
from embaudit.corpora.downstream.task import Scored
from embaudit.measures.impact.arms import ORDINARY
from embaudit.words.estimate import Estimate

Share = Literal["half", "all"]
# An arm of tokens, and the share of texts with copies.
Cell = tuple[str, Share]


@dataclass(frozen=True)
class ArmEffect:
    """The effect of an arm, or of one of its tokens.

    Attributes:
        beyond: the change compared with ordinary tokens; None for ordinary tokens.
    """

    score: float | None
    change: Estimate
    beyond: Estimate | None = None


@dataclass(frozen=True)
class CellEffects:
    """Effects of an arm (mean over its tokens) and of each token."""

    arm: ArmEffect
    tokens: tuple[ArmEffect, ...]


def clean_and_poisoned(
    task: Scored,
    clean: np.ndarray,
    poisoned: Mapping[Cell, Sequence[np.ndarray]],
    resamples: int,
    seed: int,
) -> tuple[float | None, dict[Cell, CellEffects]]:
    """The score on clean texts, and the effects in every cell.

    Args:
        clean: the task's outcomes on clean texts.
        poisoned: by cell, the outcomes with each of its tokens.
    """
    paired = PairedScores(
        task, [clean, *(outcome for tokens in poisoned.values() for outcome in tokens)], resamples, seed
    )
    places: dict[Cell, list[int]] = {}
    for cell, tokens in poisoned.items():
        start = 1 + sum(map(len, places.values()))
        places[cell] = list(range(start, start + len(tokens)))

    def effect(of: list[int], cell: Cell) -> ArmEffect:
        found = ArmEffect(paired.score(of), paired.difference(of, [0]))
        ordinary = places.get((ORDINARY, cell[1]))
        if cell[0] == ORDINARY or not ordinary:
            return found
        return replace(found, beyond=paired.difference(of, ordinary))

    return paired.score([0]), {
        cell: CellEffects(effect(own, cell), tuple(effect([one], cell) for one in own)) for cell, own in places.items()
    }
