"""The two quantities of a sticky token, from similarities before and after insertion.

definition (arXiv 2507.18171, §3):  ρ_t = mean |Sim(s1, I(s2,t,n)) − u|,  ρ_0 the same without insertion,
                                    pull = 1 − ρ_t/ρ_0, over points below u
retention (ours):                   Sim after ≈ slope · Sim before + intercept (least squares over all points);
                                    slope is what is left of a pair's own similarity,
                                    loss = 1 − slope / median slope of ordinary tokens,
                                    focal point = intercept / (1 − slope), where similarities are dragged to

All functions take sums (``embaudit.measures.sticky.moments``), weighted by how often a resample holds each draw and
each group of anchors; without weights every point counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from embaudit.measures.sticky.moments import Moments, plain_moments
from embaudit.measures.sticky.points import MIN_VARIANCE, Points

Protocol = Literal["definition", "retention"]
PROTOCOLS: tuple[Protocol, ...] = ("definition", "retention")
Severity = Literal["strong", "moderate", "weak", "negligible"]
# Graded on loss of retention: how much less than an ordinary token a token leaves of a pair's similarity.
SEVERITY_FROM_LOSS: tuple[tuple[float, Severity], ...] = ((0.5, "strong"), (0.25, "moderate"), (0.1, "weak"))
# A slope this near to 1 drags towards nothing: intercept / (1 − slope) would be noise over noise.
SLOPE_WITHOUT_FOCAL_POINT = 1e-6


@dataclass(frozen=True)
class Retention:
    """Least-squares lines of similarity after on similarity before; each array has the leading shape of the input."""

    slope: np.ndarray
    intercept: np.ndarray

    @property
    def focal_point(self) -> np.ndarray:
        """intercept / (1 − slope); NaN where the slope is 1."""
        gap = 1.0 - self.slope
        defined = np.abs(gap) > SLOPE_WITHOUT_FOCAL_POINT
        return np.divide(self.intercept, gap, out=np.full_like(gap, np.nan), where=defined)


@dataclass(frozen=True)
class Scores:
    """One value a token for each protocol; (T,) each."""

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
        Arrays (T,), or (B, T) with weights. NaN where all similarities before are equal.
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

    Args and shapes as in ``retention``. NaN where no (resampled) point lies below u.
    """
    W = _rows(points, weights)
    distance_before = W @ plain_moments(points).distance.reshape(-1, 1)
    distance_after = W @ _columns(moments.of_groups("distance"))
    ratio = np.divide(
        distance_after, distance_before, out=np.full_like(distance_after, np.nan), where=distance_before > 0
    )
    return 1.0 - ratio if weights is not None else (1.0 - ratio)[0]


def score(points: Points, moments: Moments, weights: np.ndarray | None = None) -> Scores:
    """Pull and retention of tokens; with (K, G) weights, from part of the draws and anchors."""
    if weights is None:
        return Scores(pull(points, moments), retention(points, moments).slope)
    return Scores(pull(points, moments, weights[None])[0], retention(points, moments, weights[None]).slope[0])


def rho(points: Points, moments: Moments) -> np.ndarray:
    """(T,) ρ_t, mean |Sim − u| over the points whose similarity *before* lies below u."""
    mean: np.ndarray = moments.of_groups("distance").sum(axis=(1, 2)) / plain_moments(points).below.sum()
    return mean


def rho_before(points: Points) -> float:
    """ρ_0."""
    plain = plain_moments(points)
    return float(plain.distance.sum() / plain.below.sum())


def severity(loss: float) -> Severity:
    """How bad a loss of retention is in itself, whatever the other candidates do."""
    return next((name for least, name in SEVERITY_FROM_LOSS if loss >= least), "negligible")


def _rows(points: Points, weights: np.ndarray | None) -> np.ndarray:
    """(B, K·G) float64."""
    if weights is None:
        return np.ones((1, len(points.draws) * points.group_count))
    return weights.reshape(len(weights), -1).astype(np.float64)


def _columns(sums: np.ndarray) -> np.ndarray:
    """(T, K, G) -> (K·G, T)."""
    return sums.reshape(len(sums), -1).T
