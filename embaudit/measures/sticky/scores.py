"""The two quantities of a sticky token, from similarities before and after insertion.

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

from dataclasses import dataclass
from typing import Literal

import numpy as np

from embaudit.measures.sticky.moments import Moments, plain_moments
from embaudit.measures.sticky.points import MIN_VARIANCE, Points

Protocol = Literal["definition", "retention"]
PROTOCOLS: tuple[Protocol, ...] = ("definition", "retention")
Severity = Literal["strong", "moderate", "weak", "negligible"]
# Graded on loss: how much less of a pair's similarity a token retains than ordinary tokens do.
SEVERITY_FROM_LOSS: tuple[tuple[float, Severity], ...] = ((0.5, "strong"), (0.25, "moderate"), (0.1, "weak"))
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


def severity(loss: float) -> Severity:
    """Grade of a loss in absolute terms, independent of other candidates."""
    return next((name for least, name in SEVERITY_FROM_LOSS if loss >= least), "negligible")


def _rows(points: Points, weights: np.ndarray | None) -> np.ndarray:
    """(B, K·G) float64."""
    if weights is None:
        return np.ones((1, len(points.draws) * points.group_count))
    return weights.reshape(len(weights), -1).astype(np.float64)


def _columns(sums: np.ndarray) -> np.ndarray:
    """(T, K, G) -> (K·G, T)."""
    return sums.reshape(len(sums), -1).T
