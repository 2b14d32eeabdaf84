"""Sums of similarities after insertion: all that pull, retention and their intervals need, in a few numbers per draw.

A token's similarities y to hundreds of anchors are not kept. For each draw and each group of anchors, these sums are:

    Σ (y − o)      Σ (y − o)(x − o)      Σ |y − u| over the points with x < u

with x the similarity before insertion and o the points' ``origin``; and, over all anchors of the draw, Σ (y − o)² and
the number of points with |y − u| ≤ ε, the paper's definition of sticky. Sums add up: a score on some of the draws, on
half of the anchors, or on a resample of both is computed from weighted sums of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky.points import Points

TOKENS_PER_STEP = 1_024
# ε of |Sim − u| ≤ ε.
NEAR_U = (0.05, 0.1)
PER_GROUP = ("y", "xy", "distance")
PER_DRAW = ("yy", *(f"near_{round(100 * epsilon):02}" for epsilon in NEAR_U))


@dataclass(frozen=True)
class Moments:
    """(T, K, 3·G + 3) float64: tokens × draws × sums, each of ``PER_GROUP`` for all groups, then ``PER_DRAW``."""

    values: np.ndarray

    @staticmethod
    def names(groups: int) -> list[str]:
        """The names of the sums on the last axis."""
        return [*(f"{name}_{group}" for name in PER_GROUP for group in range(groups)), *PER_DRAW]

    @property
    def groups(self) -> int:
        return (self.values.shape[2] - len(PER_DRAW)) // len(PER_GROUP)

    def of_groups(self, name: str) -> np.ndarray:
        """(T, K, G)."""
        start = PER_GROUP.index(name) * self.groups
        return self.values[:, :, start : start + self.groups]

    def of_draws(self, name: str) -> np.ndarray:
        """(T, K)."""
        held: np.ndarray = self.values[:, :, len(PER_GROUP) * self.groups + PER_DRAW.index(name)]
        return held

    def at(self, tokens: np.ndarray | slice, draws: Sequence[int]) -> Moments:
        return Moments(np.ascontiguousarray(self.values[tokens][:, list(draws)]))


@dataclass(frozen=True)
class PlainMoments:
    """Sums over the similarities before insertion, by draw and group, (K, G) each.

    Attributes:
        n: number of points.
        x, xx: Σ (x − o) and Σ (x − o)².
        below: number of points below u; ``distance``: Σ |x − u| over them.
    """

    n: np.ndarray
    x: np.ndarray
    xx: np.ndarray
    below: np.ndarray
    distance: np.ndarray


def plain_moments(points: Points) -> PlainMoments:
    """The sums before insertion."""
    x, below, members = points.before - points.origin, points.below_u, points.members
    return PlainMoments(
        np.ones_like(x) @ members,
        x @ members,
        np.square(x) @ members,
        below @ members,
        np.where(below, np.abs(points.before - points.u), 0.0) @ members,
    )


def insert_tokens(
    encoder: Encoder,
    points: Points,
    token_ids: np.ndarray,
    draws: Sequence[int],
    progress: Progress = no_progress,
) -> Moments:
    """Insert each token into each of the draws, compare with the anchors, and sum.

    A sum depends only on its token and draw, not on other tokens or the batch, to 1e-6 per point in float32.

    Returns:
        (T, len(draws), sums).
    """
    import torch

    groups = points.group_count
    values = np.empty((len(token_ids), len(draws), len(Moments.names(groups))))
    for place, draw in enumerate(draws):
        sums = DrawSums(points, draw)
        anchors = torch.from_numpy(points.anchors[points.partners[draw]]).to(encoder.checkpoint.device)
        for start in range(0, len(token_ids), TOKENS_PER_STEP):
            part = token_ids[start : start + TOKENS_PER_STEP]
            vectors = encoder.encode_dense(torch.from_numpy(points.draws[draw].insert(part)))
            vectors = torch.nn.functional.normalize(vectors, dim=1)
            values[start : start + len(part), place] = sums((vectors @ anchors.T).cpu().numpy())
            progress(len(part))
    return Moments(values)


class DrawSums:
    """The sums of one draw, over the anchors that it is compared with."""

    def __init__(self, points: Points, draw: int) -> None:
        self._origin, self._u = points.origin, points.u
        self._members = points.members
        self._x = (points.before[draw] - points.origin)[:, None] * self._members
        self._below = points.below_u[draw, :, None] * self._members

    def __call__(self, similarities: np.ndarray) -> np.ndarray:
        """(T, C) float32 -> (T, sums)."""
        y = similarities.astype(np.float64)
        distance, centred = np.abs(y - self._u), y - self._origin
        return np.concatenate(
            [
                *(centred @ self._members, centred @ self._x, distance @ self._below),
                np.square(centred).sum(axis=1, keepdims=True),
                *((distance <= epsilon).sum(axis=1, keepdims=True) for epsilon in NEAR_U),
            ],
            axis=1,
        )
