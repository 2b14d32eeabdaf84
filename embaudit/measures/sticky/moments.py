"""Sums of similarities after insertion: all that pull, retention and their intervals need, in a few numbers per draw.

A token's similarities y to hundreds of anchors are not kept. For each draw and each group of anchors, these sums are:

    Σ (y − o)      Σ (y − o)(x − o)      Σ |y − u| over the points with x < u

with x the similarity before insertion and o the points' ``origin``; and, over all anchors of the draw, Σ (y − o)² and
the number of points with |y − u| ≤ ε, the paper's definition of sticky. Sums add up: a score on some of the draws, on
half of the anchors, or on a resample of both is computed from weighted sums of these.

The two quantities of a sticky token, from similarities before and after insertion.

definition (arXiv 2507.18171, §3):  ρ_t = mean |Sim(s1, I(s2,t,n)) − u|,  ρ_0 the same without insertion,
                                    pull = 1 − ρ_t/ρ_0, over points below u
retention (ours):                   Sim after ≈ slope · Sim before + intercept (least squares over all points);
                                    slope is the share of a pair's own similarity that is retained,
                                    loss = 1 − slope / median slope of ordinary tokens,
                                    focal point = intercept / (1 − slope), the value that similarities are pulled to

All functions take sums (``embaudit.measures.sticky.moments``), weighted by the multiplicity of each draw and group of
anchors in a resample; without weights every point counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky.points import MIN_VARIANCE, Points
from embaudit.measures.sticky.tables import Protocol

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


PROTOCOLS: tuple[Protocol, ...] = ("definition", "retention")
# With a slope this close to 1 there is no focal point: intercept / (1 − slope) would be noise over noise.
SLOPE_WITHOUT_FOCAL_POINT = 1e-6


@dataclass(frozen=True)
class Retention:
    """Least-squares fits of similarity after on similarity before; arrays have the leading shape of the input."""

    slope: np.ndarray
    intercept: np.ndarray

    @property
    def focal_point(self) -> np.ndarray:
        """intercept / (1 − slope); NaN if the slope is 1."""
        gap = 1.0 - self.slope
        defined = np.abs(gap) > SLOPE_WITHOUT_FOCAL_POINT
        return np.divide(self.intercept, gap, out=np.full_like(gap, np.nan), where=defined)


@dataclass(frozen=True)
class Scores:
    """One value per token and protocol; (T,) each."""

    pull: np.ndarray
    slope: np.ndarray

    def of(self, protocol: Protocol) -> np.ndarray:
        return self.pull if protocol == "definition" else self.slope

    def at(self, tokens: np.ndarray) -> Scores:
        return Scores(self.pull[tokens], self.slope[tokens])


def retention(points: Points, moments: Moments, weights: np.ndarray | None = None) -> Retention:
    """Fit after ≈ slope · before + intercept.

    Args:
        moments: of T tokens, over all draws of ``points``.
        weights: (B, K, G) counts of B resamples, or None for the points as they are.

    Returns:
        Arrays (T,), or (B, T) with weights. NaN if all similarities before are equal.
    """
    plain, W = plain_moments(points), _rows(points, weights)
    total = W @ plain.n.reshape(-1, 1)
    x, xx = (W @ sums.reshape(-1, 1) / total for sums in (plain.x, plain.xx))
    y, xy = (W @ _columns(moments.of_groups(name)) / total for name in ("y", "xy"))
    covariance, variance = xy - x * y, xx - np.square(x)
    slope = np.divide(covariance, variance, out=np.full_like(covariance, np.nan), where=variance > MIN_VARIANCE)
    intercept = (y + points.origin) - slope * (x + points.origin)
    return Retention(slope, intercept) if weights is not None else Retention(slope[0], intercept[0])


def pull(points: Points, moments: Moments, weights: np.ndarray | None = None) -> np.ndarray:
    """1 − ρ_t/ρ_0 over the points below u.

    Arguments and shapes as in ``retention``. NaN if no (resampled) point is below u.
    """
    W = _rows(points, weights)
    distance_before = W @ plain_moments(points).distance.reshape(-1, 1)
    distance_after = W @ _columns(moments.of_groups("distance"))
    ratio = np.divide(
        distance_after, distance_before, out=np.full_like(distance_after, np.nan), where=distance_before > 0
    )
    return 1.0 - ratio if weights is not None else (1.0 - ratio)[0]


def score(points: Points, moments: Moments, weights: np.ndarray | None = None) -> Scores:
    """Pull and retention of tokens; with (K, G) weights, on part of the draws and anchors."""
    if weights is None:
        return Scores(pull(points, moments), retention(points, moments).slope)
    return Scores(pull(points, moments, weights[None])[0], retention(points, moments, weights[None]).slope[0])


def rho(points: Points, moments: Moments) -> np.ndarray:
    """(T,) ρ_t, mean |Sim − u| over the points whose similarity *before* insertion is below u."""
    mean: np.ndarray = moments.of_groups("distance").sum(axis=(1, 2)) / plain_moments(points).below.sum()
    return mean


def rho_before(points: Points) -> float:
    """ρ_0."""
    plain = plain_moments(points)
    return float(plain.distance.sum() / plain.below.sum())


def _rows(points: Points, weights: np.ndarray | None) -> np.ndarray:
    """(B, K·G) float64."""
    if weights is None:
        return np.ones((1, len(points.draws) * points.group_count))
    return weights.reshape(len(weights), -1).astype(np.float64)


def _columns(sums: np.ndarray) -> np.ndarray:
    """(T, K, G) -> (K·G, T)."""
    return sums.reshape(len(sums), -1).T
