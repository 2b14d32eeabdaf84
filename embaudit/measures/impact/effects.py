"""What tokens in texts do to a score: the change from clean texts, and how far it is beyond that of ordinary tokens.

For arm a with tokens t of a set T_a, s(t) a task's score with t in the texts and s(0) with none:

    score_a = mean over T_a of s(t);   change_a = score_a − s(0);   beyond_a = score_a − score_ordinary

Intervals resample units of items (queries that share a relevant document, pairs that share a sentence, texts), the same
resample for every arm, so that differences are paired: estimate ± 1.96 standard deviations over the resamples (Efron
and Tibshirani 1993, §13.3). The tokens of an arm are taken as given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from embaudit.downstream.task import Scored
from embaudit.intervals import MIN_UNITS, NORMAL, resample_clusters
from embaudit.measures.impact.arms import ORDINARY

Share = Literal["half", "all"]
# What held copies: an arm of tokens, and how many of the texts.
Cell = tuple[str, Share]


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; no interval below ten units, or where no resample differs."""

    value: float | None
    low: float | None = None
    high: float | None = None


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
    columns = [clean, *(outcome for tokens in poisoned.values() for outcome in tokens)]
    scores = _scores(task, columns, np.arange(len(task.items.units))[None])[0]
    resampled = _resampled(task, columns, resamples, seed)
    places: dict[Cell, list[int]] = {}
    for cell, tokens in poisoned.items():
        start = 1 + sum(map(len, places.values()))
        places[cell] = list(range(start, start + len(tokens)))

    def compared(of: list[int], to: list[int]) -> Estimate:
        value = scores[of].mean() - scores[to].mean()
        return _estimate(value, resampled[:, of].mean(axis=1) - resampled[:, to].mean(axis=1))

    def effect(of: list[int], cell: Cell) -> Effect:
        found = Effect(_defined(scores[of].mean()), compared(of, [0]))
        ordinary = places.get((ORDINARY, cell[1]))
        return found if cell[0] == ORDINARY or not ordinary else replace(found, beyond=compared(of, ordinary))

    return _defined(scores[0]), {
        cell: CellEffects(effect(own, cell), tuple(effect([one], cell) for one in own)) for cell, own in places.items()
    }


def _scores(task: Scored, columns: Sequence[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """(B, columns) scores over (B, n) chosen places; NaN where undefined."""
    return np.array([[np.nan if (s := task.score(one, row)) is None else s for one in columns] for row in chosen])


def _resampled(task: Scored, columns: Sequence[np.ndarray], resamples: int, seed: int) -> np.ndarray:
    """(B, columns) scores over resamples of whole units; B = 0 for fewer units than an interval takes."""
    _, clusters = np.unique(task.items.units, return_inverse=True)
    if clusters.max(initial=-1) + 1 < MIN_UNITS:
        return np.empty((0, len(columns)))
    times = resample_clusters(clusters, resamples, seed)
    items = np.arange(len(clusters))
    return np.concatenate([_scores(task, columns, np.repeat(items, row)[None]) for row in times])


def _estimate(value: float, resampled: np.ndarray) -> Estimate:
    defined = resampled[np.isfinite(resampled)]
    half = NORMAL * defined.std(ddof=1) if len(defined) > 1 else 0.0
    if not np.isfinite(value) or half == 0:
        return Estimate(_defined(value))
    return Estimate(float(value), float(value - half), float(value + half))


def _defined(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
