"""The two quantities of a sticky token, from similarities before and after insertion.

definition (arXiv 2507.18171, §3):  ρ_t = mean |Sim(s1, I(s2,t,n)) − u|,  ρ_0 the same without insertion,
                                    pull = 1 − ρ_t/ρ_0, over pairs below u
retention (ours):                   Sim after ≈ slope · Sim before + intercept (least squares over all pairs);
                                    slope is what is left of a pair's own similarity,
                                    loss = 1 − slope / median slope of ordinary tokens,
                                    focal point = intercept / (1 − slope), where similarities are dragged to

All functions take points weighted by how often a resample holds them; without weights each counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Protocol = Literal["definition", "retention"]
PROTOCOLS: tuple[Protocol, ...] = ("definition", "retention")
Severity = Literal["strong", "moderate", "weak", "negligible"]
# Graded on loss of retention: how much less than an ordinary token a token leaves of a pair's similarity.
SEVERITY_FROM_LOSS: tuple[tuple[float, Severity], ...] = ((0.5, "strong"), (0.25, "moderate"), (0.1, "weak"))
# A slope this near to 1 drags towards nothing: intercept / (1 − slope) would be noise over noise.
SLOPE_WITHOUT_FOCAL_POINT = 1e-6
# Of similarities before: below it their differences are rounding.
MIN_VARIANCE = 1e-12


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


def retention(before: np.ndarray, after: np.ndarray, weights: np.ndarray | None = None) -> Retention:
    """Fit after ≈ slope · before + intercept.

    Args:
        before: (P,) similarities without insertion.
        after: (T, P) similarities of T tokens.
        weights: (B, P) counts of B resamples, or None for the points as they are.

    Returns:
        Arrays (T,), or (B, T) with weights. NaN where all similarities before are equal.
    """
    # Centring first keeps the weighted sums accurate: similarities lie close together on some checkpoints.
    centre = before.mean()
    x, y = before - centre, after.astype(np.float64)
    W = np.ones((1, len(x))) if weights is None else weights.astype(np.float64)
    total = W.sum(axis=1, keepdims=True)
    x_mean, y_mean = W @ x[:, None] / total, W @ y.T / total
    covariance = W @ (x[:, None] * y.T) / total - x_mean * y_mean
    variance = W @ np.square(x)[:, None] / total - np.square(x_mean)
    slope = np.divide(covariance, variance, out=np.full_like(covariance, np.nan), where=variance > MIN_VARIANCE)
    intercept = y_mean - slope * (x_mean + centre)
    if weights is None:
        return Retention(slope[0], intercept[0])
    return Retention(slope, intercept)


def pull(before: np.ndarray, after: np.ndarray, u: float, weights: np.ndarray | None = None) -> np.ndarray:
    """1 − ρ_t/ρ_0 over the points below u.

    Args and shapes as in ``retention``. NaN where no (resampled) point lies below u.
    """
    below = before < u
    W = np.ones((1, int(below.sum()))) if weights is None else weights[:, below].astype(np.float64)
    distance_after = W @ np.abs(after[:, below].astype(np.float64) - u).T
    distance_before = W @ np.abs(before[below] - u)[:, None]
    ratio = np.divide(
        distance_after, distance_before, out=np.full_like(distance_after, np.nan), where=distance_before > 0
    )
    return (1.0 - ratio)[0] if weights is None else 1.0 - ratio


def rho(similarities: np.ndarray, before: np.ndarray, u: float) -> np.ndarray:
    """ρ = mean |Sim − u| over the points whose similarity *before* lies below u; (…, P) -> (…)."""
    return np.abs(similarities[..., before < u].astype(np.float64) - u).mean(axis=-1)


def severity(loss: float) -> Severity:
    """How bad a loss of retention is in itself, whatever the other candidates do."""
    return next((name for least, name in SEVERITY_FROM_LOSS if loss >= least), "negligible")
