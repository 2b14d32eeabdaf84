"""Number of tokens in the vocabulary at each severity, estimated from the tokens that got all draws.

The number of validated tokens of a severity is limited by the shortlist, and cannot distinguish a bad checkpoint from a
worse one. The search can: what it kept got all draws, so these tokens are counted, each for itself. Of what it dropped,
the pilot has a random sample, which got all draws, too: those of its tokens that the same cuts would have dropped. Each
stands for as many tokens as were dropped per such token (stratification; Horvitz and Thompson 1952). Most bad tokens
are in the first part, so the interval is far narrower than that of the pilot alone.

Losses are noisy, and noise makes a thin tail look thick. So the distribution of the true losses is estimated first: the
maximum-likelihood distribution on a grid, where each measured loss is the true loss plus normal noise of known size
(Kiefer and Wolfowitz 1956, by expectation–maximisation), with each token's weight w_t,

    g_j ← g_j · Σ_t w_t [ φ((y_t − θ_j)/σ) / Σ_k g_k φ((y_t − θ_k)/σ) ] / Σ_t w_t,

and the number at or above a loss c is Σ w_t · Σ g_j over θ_j ≥ c. (Tokens were kept for their draws, which makes kept
tokens look worse than they are and dropped ones better; together with their weights they are the whole vocabulary,
where the noise is as it was.) The interval is a bootstrap over the tokens of each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.measures.sticky.moments import SEVERITY_FROM_LOSS, Scores, Severity
from embaudit.statistics.intervals import exact_share, percentile_intervals
from embaudit.words.estimate import Estimate

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


@dataclass(frozen=True)
class MeasuredLosses:
    """Losses of tokens that together stand for all searched ones.

    Attributes:
        counted: (C,) of tokens that stand for themselves only.
        sampled: (S,) of a random sample of the others, empty if there is none.
        others: number of tokens that the sample stands for, itself included.
        error: standard error of a loss; NaN if it is not known.
    """

    counted: np.ndarray
    sampled: np.ndarray
    others: int
    error: float

    @property
    def weights(self) -> np.ndarray:
        """(C + S,) number of tokens that each stands for."""
        return np.concatenate(
            [np.ones(len(self.counted)), np.full(len(self.sampled), self.others / max(1, len(self.sampled)))]
        )

    def resampled(self, resamples: int, generator: np.random.Generator) -> np.ndarray:
        """(B, C + S) weights, with both parts drawn again."""
        parts = [len(self.counted), len(self.sampled)]
        drawn = [generator.multinomial(n, np.full(n, 1 / n), size=resamples) for n in parts if n]
        times: np.ndarray = np.concatenate(drawn, axis=1) * self.weights
        return times

    def estimate(self, number: float, resampled: np.ndarray, least: float) -> Estimate:
        """A number of tokens with its interval: bootstrap percentiles, wider by Clopper–Pearson's of a share of 0 or 1.

        If none of a sample is that bad, none of its resamples is, which says too little about the others.
        """
        low, high = percentile_intervals(resampled[:, None])[0]
        low, high = (number, number) if low is None or high is None else (low, high)
        if hits := len(self.sampled):
            bad = int((self.sampled >= least).sum())
            ends = exact_share(bad, hits)
            if bad == 0:
                high = max(high, number + self.others * ends[1])
            if bad == hits:
                low = min(low, number - self.others * (1 - ends[0]))
        return Estimate.holding(number, (max(low, 0.0), high))


def prevalence(
    measured: MeasuredLosses, validated: Sequence[tuple[float, float | None]], resamples: int, seed: int
) -> list[Prevalence]:
    """Prevalence at each severity, worst first; nothing is estimated without losses or their error.

    Args:
        validated: loss, and the lower end of its interval, of every validated candidate.
    """
    least = [value for value, _ in SEVERITY_FROM_LOSS]
    found = [Estimate()] * len(least)
    all_losses, weights = np.concatenate([measured.counted, measured.sampled]), measured.weights
    if len(all_losses) and np.isfinite(measured.error):
        generator = np.random.default_rng([seed, len(all_losses), 3])
        drawn = np.concatenate([weights[None], measured.resampled(resamples, generator)])
        numbers = shares_at_least(all_losses, measured.error, least, drawn) * weights.sum()
        found = [
            measured.estimate(float(numbers[0, place]), numbers[1:, place], value) for place, value in enumerate(least)
        ]
    rows = []
    for (value, name), estimate in zip(SEVERITY_FROM_LOSS, found, strict=True):
        confirmed = sum(bound is not None and bound >= value for _, bound in validated)

        floored = (None if number is None else max(number, float(confirmed)) for number in estimate)
        rows.append(
            Prevalence(
                name,
                value,
                sum(loss >= value for loss, _ in validated),
                confirmed,
                *floored,
            )
        )
    return rows
