"""Losses of tokens under several conditions (remedies, positions), with paired differences.

All conditions have the same draws, anchors and tokens, and the same resamples of them. Intervals are the estimate ±
1.96 standard deviations over the resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.measures.sticky.moments import DrawSums, Moments
from embaudit.measures.sticky.points import Points, unit_rows
from embaudit.statistics.intervals import NORMAL


@dataclass(frozen=True)
class ResampledValues:
    """(n,) values, and their (B, n) resampled values."""

    values: np.ndarray
    resampled: np.ndarray


@dataclass(frozen=True)
class Loss:
    """A loss and its change from the first condition, with 95 % intervals; None if undefined."""

    value: float
    low: float | None
    high: float | None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None

    def columns(self) -> dict[str, float | None]:
        """The values by column name."""
        return {
            **{"loss": self.value, "loss_low": self.low, "loss_high": self.high},
            **{"change": self.change, "change_low": self.change_low, "change_high": self.change_high},
        }


def paired_losses(found: ResampledValues, first: ResampledValues | None) -> list[Loss]:
    """Each loss with its change from the first condition; ``first`` is None for the first condition itself."""
    halves = _halves(found.resampled)
    if first is None:
        return [Loss(float(value), *_ends(value, half)) for value, half in zip(found.values, halves, strict=True)]
    changes = found.values - first.values
    return [
        Loss(float(value), *_ends(value, half), float(change), *_ends(change, half_change))
        for value, half, change, half_change in zip(
            found.values, halves, changes, _halves(found.resampled - first.resampled), strict=True
        )
    ]


def moments_of(points: Points, vectors: np.ndarray) -> Moments:
    """Sums over the similarities of (T, K, d) vectors to the anchors."""
    sums = [
        DrawSums(points, draw)(unit_rows(vectors[:, draw]) @ points.anchors[points.partners[draw]].T)
        for draw in range(len(points.draws))
    ]
    return Moments(np.stack(sums, axis=1))


def with_mean(values: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """(B, T) -> (B, n + 1): the values at ``places``, followed by their mean."""
    chosen = values[:, list(places)]
    return np.column_stack([chosen, chosen.mean(axis=1)])


def _halves(resampled: np.ndarray) -> np.ndarray:
    halves: np.ndarray = NORMAL * resampled.std(axis=0, ddof=1)
    return halves


def _ends(value: float, half: float) -> tuple[float | None, float | None]:
    """An interval of width zero is dropped: it would suggest certainty."""
    return (float(value - half), float(value + half)) if np.isfinite(half) and half > 0 else (None, None)
