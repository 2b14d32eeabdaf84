"""Number of tokens in the vocabulary at each severity, estimated from a random sample.

The number of validated tokens of a severity is limited by the shortlist, and cannot distinguish a bad checkpoint from a
worse one. A random sample can. But its losses are noisy, and noise makes a thin tail look thick. So the distribution of
the true losses is estimated first: the maximum-likelihood distribution on a grid, where each measured loss is the true
loss plus normal noise of known size (Kiefer and Wolfowitz 1956, by expectation–maximisation),

    g_j ← g_j · mean_t [ φ((y_t − θ_j)/σ) / Σ_k g_k φ((y_t − θ_k)/σ) ],

and the share at or above a loss c is Σ g_j over θ_j ≥ c. The interval is a bootstrap over the sampled tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.intervals import Ends, exact_share, holding, percentile_intervals
from embaudit.measures.sticky.scores import SEVERITY_FROM_LOSS, Scores, Severity

GRID_STEP = 0.0125
ITERATIONS = 100
# Smaller than any loss that matters; avoids a division by zero if losses have no noise.
MIN_NOISE = 0.25 * GRID_STEP


@dataclass(frozen=True)
class Prevalence:
    """Number of searched tokens at least as bad as ``severity``.

    Attributes:
        validated: among the validated tokens; ``confirmed``: those whose whole interval is at least as bad.
        estimated: in total, with a 95 % interval; not below ``confirmed``. None without a sample.
    """

    severity: Severity
    least_loss: float
    validated: int
    confirmed: int
    estimated: float | None
    low: float | None
    high: float | None


def losses(slopes: np.ndarray, is_ordinary: np.ndarray) -> np.ndarray:
    """1 − slope / median slope of the ordinary tokens; (..., T)."""
    return 1 - slopes / np.median(slopes[..., is_ordinary], axis=-1, keepdims=True)


def noise(split: Sequence[tuple[Scores, Scores]], is_ordinary: np.ndarray) -> float:
    """Standard error of a loss on all draws and anchors: that of the mean of two halves, √(mean (a − b)² / 4).

    The halves share neither draws nor anchors; the mean is over tokens and splits.
    """
    gaps = [losses(one.slope, is_ordinary) - losses(other.slope, is_ordinary) for one, other in split]
    return float(np.sqrt(np.mean(np.square(gaps)) / 4))


def shares_at_least(measured: np.ndarray, error: float, least: Sequence[float], weights: np.ndarray) -> np.ndarray:
    """(B, len(least)): the share of true losses at or above each value.

    Args:
        measured: (T,) losses; error: their standard error.
        weights: (B, T), multiplicity of each in a resample.
    """
    error = max(error, MIN_NOISE)
    # Severity boundaries are multiples of the step; grid points lie halfway between, so none falls on a boundary.
    grid = np.arange(np.floor((measured.min() - 3 * error) / GRID_STEP), measured.max() / GRID_STEP + 2) * GRID_STEP
    grid = grid + GRID_STEP / 2
    likelihood = np.exp(-0.5 * np.square((measured[:, None] - grid) / error))
    mass = np.full((len(weights), len(grid)), 1 / len(grid))
    share = weights / weights.sum(axis=1, keepdims=True)
    for _ in range(ITERATIONS):
        mass = mass * ((share / (mass @ likelihood.T)) @ likelihood)
    return np.stack([mass[:, grid >= value].sum(axis=1) for value in least], axis=1)


def _interval(share: float, resampled: np.ndarray, measured: np.ndarray, least: float) -> Ends:
    """Interval of a share of tokens: bootstrap percentiles, or Clopper–Pearson if all resamples agree.

    They agree if the sample contains no such token, or only such tokens; an interval of width zero would be wrong.
    """
    interval = percentile_intervals(resampled[:, None])[0]
    return holding(
        share, exact_share(int((measured >= least).sum()), len(measured)) if interval == (None, None) else interval
    )


def prevalence(
    measured: np.ndarray,
    error: float,
    searched: int,
    validated: Sequence[tuple[float, float | None]],
    resamples: int,
    seed: int,
) -> list[Prevalence]:
    """Prevalence at each severity, worst first.

    Args:
        measured: (T,) losses of a random sample of the searched tokens; empty if there is none.
        error: their standard error; if NaN (unknown), nothing is estimated.
        searched: number of tokens that the sample represents.
        validated: loss, and the lower end of its interval, of every validated candidate.
    """
    least = [value for value, _ in SEVERITY_FROM_LOSS]
    found: list[tuple[float | None, float | None, float | None]] = [(None, None, None)] * len(least)
    if len(measured) and np.isfinite(error):
        generator = np.random.default_rng([seed, len(measured), 3])
        drawn = generator.multinomial(len(measured), np.full(len(measured), 1 / len(measured)), size=resamples)
        weights = np.concatenate([np.ones((1, len(measured))), drawn])
        shares = shares_at_least(measured, error, least, weights)
        of_sample = [
            (float(shares[0, place]), *_interval(float(shares[0, place]), shares[1:, place], measured, value))
            for place, value in enumerate(least)
        ]
        found = [
            tuple(None if one is None else searched * one for one in row)  # type: ignore[misc]
            for row in of_sample
        ]
    rows = []
    for (value, name), (estimated, low, high) in zip(SEVERITY_FROM_LOSS, found, strict=True):
        confirmed = sum(bound is not None and bound >= value for _, bound in validated)

        def floored(number: float | None, floor: int = confirmed) -> float | None:
            return None if number is None else max(number, float(floor))

        rows.append(
            Prevalence(
                name,
                value,
                sum(loss >= value for loss, _ in validated),
                confirmed,
                floored(estimated),
                floored(low),
                floored(high),
            )
        )
    return rows
