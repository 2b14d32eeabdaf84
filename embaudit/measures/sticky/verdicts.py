"""Verdicts on candidates: the adaptive threshold (arXiv 2507.18171, §4.3), and rows made of effects and thresholds.

v > Q3 + 0.7·IQR if large values are sticky (pull, the reference value), v < Q1 − 0.7·IQR for the slope; linear
quantiles over a protocol's own shortlist. Severity grades the effect in absolute terms: an outlier can be negligible.
The rows are those of ``sticky_validation``, ``sticky_summary`` and ``sticky_severity``.

Number of tokens in the vocabulary at each severity, estimated from the tokens that got all draws.

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

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from embaudit.measures.sticky.effects import Effect, false_discovery
from embaudit.measures.sticky.moments import PROTOCOLS, Scores
from embaudit.measures.sticky.plan import SearchFound
from embaudit.measures.sticky.tables import SEVERITY_FROM_LOSS, Protocol, StickySeverityRow
from embaudit.statistics import exact_share, percentile_intervals
from embaudit.words.estimate import Estimate

GRID_STEP = 0.0125
ITERATIONS = 100
# Smaller than any loss that matters; avoids a division by zero if losses have no noise.
MIN_NOISE = 0.25 * GRID_STEP


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
) -> list[StickySeverityRow]:
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
        reaching = sum(loss >= value for loss, _ in validated)
        confirmed = sum(bound is not None and bound >= value for _, bound in validated)
        floored = Estimate(*(None if number is None else max(number, float(confirmed)) for number in estimate))
        rows.append(
            StickySeverityRow(
                severity=name,
                least_loss=value,
                validated=reaching,
                confirmed=confirmed,
                **floored.columns("estimated"),
                is_capped=floored.low is not None and floored.low > reaching,
            )
        )
    return rows


IQR_FACTOR = 0.7
# With fewer candidates, the quartiles depend too much on each single one.
MIN_FOR_THRESHOLD = 40
# not_shortlisted: a candidate of the other protocol, to which this threshold does not apply.
Outlier = Literal["yes", "no", "no_threshold", "not_shortlisted"]


@dataclass(frozen=True)
class Threshold:
    """The adaptive threshold of one protocol; ``value`` is None with too few candidates."""

    protocol: Protocol
    value: float | None
    candidates: int

    def is_outlier(self, effect: Effect) -> Outlier:
        """Whether a candidate stands out from the other candidates."""
        if self.value is None:
            return "no_threshold"
        v = validation_value(self.protocol, effect)
        stands_out = v > self.value if self.protocol == "definition" else v < self.value
        return "yes" if stands_out else "no"


def validation_value(protocol: Protocol, effect: Effect) -> float:
    """v_t: pull under ``definition``, slope under ``retention``."""
    return effect.pull if protocol == "definition" else effect.slope


def adaptive_threshold(values: np.ndarray, *, above: bool) -> float | None:
    """Q3 + 0.7·IQR (``above``) or Q1 − 0.7·IQR of the candidates' values; None with fewer than 40 candidates."""
    if len(values) < MIN_FOR_THRESHOLD:
        return None
    q1, q3 = np.quantile(values, [0.25, 0.75])
    reach = IQR_FACTOR * (q3 - q1)
    return float(q3 + reach if above else q1 - reach)


@dataclass(frozen=True)
class TokenEffects:
    """Results of the validation: shortlists and controls (ids), every token's effect, each protocol's threshold."""

    shortlists: Mapping[Protocol, Sequence[int]]
    controls: Collection[int]
    effects: Mapping[int, Effect]
    thresholds: Sequence[Threshold]

    def is_outlier(self, threshold: Threshold, token: int) -> Outlier:
        """Whether a candidate is an outlier; a threshold applies only to its own shortlist."""
        if threshold.value is not None and token not in self.shortlists[threshold.protocol]:
            return "not_shortlisted"
        return threshold.is_outlier(self.effects[token])


def common_thresholds(shortlists: Mapping[Protocol, Sequence[int]], effects: Mapping[int, Effect]) -> list[Threshold]:
    """Each protocol's threshold, from its shortlist's effects on the same points."""
    thresholds = []
    for protocol in PROTOCOLS:
        values = np.array([validation_value(protocol, effects[token]) for token in shortlists[protocol]])
        value = adaptive_threshold(values, above=protocol == "definition")
        thresholds.append(Threshold(protocol, value, len(values)))
    return thresholds


def validation_rows(judged: TokenEffects, basis: str, dtype: str) -> list[dict[str, Any]]:
    """One row per token and protocol; controls get no verdict, and only a protocol's own candidates a q-value."""
    rows = []
    for threshold in judged.thresholds:
        q_values = _q_values(judged, threshold.protocol)
        for token in sorted(judged.effects):
            effect, is_control = asdict(judged.effects[token]), token in judged.controls
            p_pull, p_slope = effect.pop("p_pull"), effect.pop("p_slope")
            rows.append(
                {
                    "token_id": token,
                    "protocol": threshold.protocol,
                    "role": "control" if is_control else "candidate",
                    **effect,
                    "p_value": p_pull if threshold.protocol == "definition" else p_slope,
                    "q_value": q_values.get(token),
                    "value": validation_value(threshold.protocol, judged.effects[token]),
                    "threshold": threshold.value,
                    "outlier": None if is_control else judged.is_outlier(threshold, token),
                    "basis": basis,
                    "dtype": dtype,
                }
            )
    return rows


def summary_rows(judged: TokenEffects, shared: Mapping[str, Any], scan: SearchFound) -> list[dict[str, Any]]:
    """One row per protocol.

    Args:
        shared: the columns that do not depend on the protocol.
    """
    rows = []
    for threshold in judged.thresholds:
        protocol = threshold.protocol
        own = {token: validation_value(protocol, effect) for token, effect in judged.effects.items()}
        misses = scan.misses[protocol] or dict.fromkeys(("belonging", "missed", "rate", "low", "high"))
        rows.append(
            {
                **shared,
                "protocol": protocol,
                "rungs": json.dumps(shared["rungs"]),
                **_agreement(scan.reliability[protocol]).columns("reliability"),
                **_agreement(scan.prediction[protocol]).columns("prediction"),
                "rank_correlation": shared["rank_correlation"][protocol],
                "candidates": threshold.candidates,
                "control_median": float(np.median([own[token] for token in judged.controls])),
                "threshold": threshold.value,
                "outliers": sum(judged.is_outlier(threshold, token) == "yes" for token in judged.shortlists[protocol]),
                "pilot_shortlisted": misses["belonging"],
                "pilot_missed": misses["missed"],
                "miss_rate": misses["rate"],
                "miss_low": misses["low"],
                "miss_high": misses["high"],
            }
        )
    return rows


def _agreement(agreement: Mapping[str, float | None]) -> Estimate:
    return Estimate(agreement["rho"], agreement["low"], agreement["high"])


def _q_values(judged: TokenEffects, protocol: Protocol) -> dict[int, float]:
    listed = sorted(judged.shortlists[protocol])
    p_values = [
        judged.effects[token].p_pull if protocol == "definition" else judged.effects[token].p_slope for token in listed
    ]
    return dict(zip(listed, false_discovery(np.array(p_values)).tolist(), strict=True))
