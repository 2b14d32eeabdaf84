"""Scores of one task under several arms on the same resamples of its units, so that differences are paired.

A unit is a group of queries that share a relevant document, a group of pairs that share a sentence, or a text. An
interval is the estimate ± 1.96 standard deviations over the resamples (Efron and Tibshirani 1993, §13.3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit.corpora.downstream.task import Scored
from embaudit.statistics.intervals import MIN_UNITS, NORMAL, resample_clusters
from embaudit.words.estimate import Estimate


class PairedScores:
    """Scores of n arms.

    Args:
        outcomes: the task's outcomes, one array per arm.
    """

    def __init__(self, task: Scored, outcomes: Sequence[np.ndarray], resamples: int, seed: int) -> None:
        items = np.arange(len(task.items.units))
        self._scores = _scores(task, outcomes, items[None])[0]
        _, clusters = np.unique(task.items.units, return_inverse=True)
        self._resampled = np.empty((0, len(outcomes)))
        if clusters.max(initial=-1) + 1 >= MIN_UNITS:
            times = resample_clusters(clusters, resamples, seed)
            self._resampled = np.concatenate([_scores(task, outcomes, np.repeat(items, row)[None]) for row in times])

    def score(self, arms: Sequence[int]) -> float | None:
        """The mean of the arms' scores; None if one is undefined."""
        return _defined(self._scores[list(arms)].mean())

    def difference(self, of: Sequence[int], to: Sequence[int]) -> Estimate:
        """Mean score of the arms ``of`` − of ``to``; no interval below ten units, or if all resamples agree."""
        value = self._scores[list(of)].mean() - self._scores[list(to)].mean()
        resampled = self._resampled[:, list(of)].mean(axis=1) - self._resampled[:, list(to)].mean(axis=1)
        defined = resampled[np.isfinite(resampled)]
        half = NORMAL * defined.std(ddof=1) if len(defined) > 1 else 0.0
        if not np.isfinite(value) or half == 0:
            return Estimate(_defined(value))
        return Estimate.around(float(value), float(half))


def _scores(task: Scored, outcomes: Sequence[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """(B, arms) scores over (B, n) chosen items; NaN where undefined."""
    return np.array([[np.nan if (s := task.score(one, row)) is None else s for one in outcomes] for row in chosen])


def _defined(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
