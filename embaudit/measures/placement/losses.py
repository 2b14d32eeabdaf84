"""Losses from copies of tokens placed by each strategy.

For token t and strategy m, on sentences that the search for tokens did not use (its validation did) and anchors that
no search for places used,

    loss_m(t) = 1 − slope_m(t) / median of slope_rotation over ordinary tokens

with the slope of ``retention`` (``embaudit.measures.sticky.moments``). All strategies have the same reference, so that
a position where ordinary words do harm, too, counts as worse. Resamples are of draws, groups of anchors and ordinary
tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.measures.placement import Strategy
from embaudit.measures.sticky.effects import (
    Loss,
    ResampledValues,
    crossed_resamples,
    drawn_controls,
    moments_of,
    paired_losses,
    with_mean,
)
from embaudit.measures.sticky.moments import retention
from embaudit.measures.sticky.points import Points


@dataclass(frozen=True)
class StrategyLosses:
    """Losses of one strategy: each severe token, their mean, and the median ordinary token."""

    tokens: list[Loss]
    severe: Loss
    ordinary: Loss


def placement_losses(
    points: Points,
    by_strategy: Mapping[Strategy, np.ndarray],
    severe: Sequence[int],
    ordinary: Sequence[int],
    resamples: int,
    seed: int,
) -> dict[Strategy, StrategyLosses]:
    """Losses of every strategy, with the change from the first one, which is the reference.

    Args:
        by_strategy: (T, K, d) vectors of T tokens in the K draws.
        severe, ordinary: indices among the T tokens.
    """
    weights = crossed_resamples(points, resamples, seed)
    is_ordinary = np.zeros(len(next(iter(by_strategy.values()))), dtype=bool)
    is_ordinary[list(ordinary)] = True
    drawn = drawn_controls(is_ordinary, resamples, seed)

    def medians(slopes: np.ndarray) -> np.ndarray:
        return np.median(np.take_along_axis(slopes, drawn, axis=1), axis=1, keepdims=True)

    found: dict[Strategy, StrategyLosses] = {}
    first: ResampledValues | None = None
    unit, units = 1.0, np.ones((resamples, 1))
    for strategy, vectors in by_strategy.items():
        moments = moments_of(points, vectors)
        slope, slopes = retention(points, moments).slope[None], retention(points, moments, weights).slope
        middle, middles = np.median(slope[:, is_ordinary], axis=1, keepdims=True), medians(slopes)
        if first is None:
            unit, units = float(middle[0, 0]), middles
        of_all = ResampledValues(
            (1 - np.column_stack([with_mean(slope, severe), middle]) / unit)[0],
            1 - np.column_stack([with_mean(slopes, severe), middles]) / units,
        )
        *tokens, mean, median = paired_losses(of_all, first)
        found[strategy] = StrategyLosses(tokens, mean, median)
        first = first or of_all
    return found
