"""Effects of validated tokens on similarities, with intervals, compared with ordinary tokens.

pull, slope, loss and focal point are defined in ``embaudit.measures.sticky.moments`` (arXiv 2507.18171, §3, and
retention). Over the same points: shift = mean(after − before), compression = SD(after)/SD(before), and the share of
similarities within ε of u (the paper's definition of sticky, |Sim − u| ≤ ε).

p-values are for H0 "no more extreme than the controls' 95th percentile", on sentences not used for selection: the share
of resamples in which the token does not exceed the controls' percentile in the same resample,
p = (1 + #{b: v_b not beyond q_b}) / (B + 1). q-values are Benjamini–Hochberg over a protocol's candidates.

Losses of tokens under several conditions (remedies, positions), with paired differences.

All conditions have the same draws, anchors and tokens, and the same resamples of them. Intervals are the estimate ±
1.96 standard deviations over the resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from embaudit.measures.sticky.moments import (
    NEAR_U,
    PER_DRAW,
    DrawSums,
    Moments,
    plain_moments,
    pull,
    retention,
    rho,
    rho_before,
)
from embaudit.measures.sticky.points import MIN_VARIANCE, Points, unit_rows
from embaudit.measures.sticky.tables import TokenEffect, severity_of
from embaudit.statistics import NORMAL, percentile_intervals, resample_clusters
from embaudit.words.estimate import Estimate

# H0: no more extreme than this percentile of ordinary tokens.
CONTROL_PERCENTILE = 95.0


class Effect(TokenEffect):
    """With p-values for H0, by both protocols' figures."""

    p_pull: float
    p_slope: float


def measure_effects(
    points: Points, moments: Moments, is_control: np.ndarray, resamples: int, seed: int
) -> list[Effect]:
    """The effect of every token, in the order of ``moments``.

    Intervals are percentiles of a bootstrap over draws, groups of anchors and controls, resampled independently
    (crossed random factors). ρ_t, ρ_0 and the controls' medians are resampled together, so that variation shared by all
    tokens does not widen the intervals.

    Args:
        moments: (T, K, sums), candidates and controls, over all draws of ``points``.
        is_control: (T,) bool, the ordinary tokens that loss and excess are relative to.
    """
    u, plain = points.u, plain_moments(points)
    line, pulls = retention(points, moments), pull(points, moments)
    losses = 1 - line.slope / np.median(line.slope[is_control])
    excess = pulls - np.median(pulls[is_control])
    rho_t, rho_0 = rho(points, moments), rho_before(points)
    near = near_u(points, moments)
    after = moments.of_groups("y").sum(axis=(1, 2)) / points.count
    spread_after = np.sqrt(np.maximum(moments.of_draws("yy").sum(axis=1) / points.count - np.square(after), 0.0))

    weights = crossed_resamples(points, resamples, seed)
    lines, pulls_b = retention(points, moments, weights), pull(points, moments, weights)
    drawn = drawn_controls(is_control, resamples, seed)
    ordinary = np.median(np.take_along_axis(lines.slope, drawn, axis=1), axis=1, keepdims=True)

    def estimates(values: np.ndarray, resampled: np.ndarray) -> list[Estimate]:
        found = zip(values, percentile_intervals(resampled), strict=True)
        return [Estimate.holding(_number(value), ends) for value, ends in found]

    pull_of, slope_of = estimates(pulls, pulls_b), estimates(line.slope, lines.slope)
    loss_of = estimates(losses, 1 - lines.slope / ordinary)
    focal_of = estimates(line.focal_point, lines.focal_point)
    p_pull, p_slope = _p_values(pulls_b, drawn), _p_values(-lines.slope, drawn)
    # Rounding must not count as spread, as in ``retention``.
    variance = np.var(points.before)
    spread = float(np.sqrt(variance)) if variance > MIN_VARIANCE else 0.0
    before = plain.x.sum() / points.count
    effects = []
    for t in range(len(moments.values)):
        effects.append(
            Effect(
                points=points.count,
                rho=float(rho_t[t]),
                rho_0=rho_0,
                pull=float(pulls[t]),
                pull_low=pull_of[t].low,
                pull_high=pull_of[t].high,
                excess_pull=float(excess[t]),
                slope=float(line.slope[t]),
                slope_low=slope_of[t].low,
                slope_high=slope_of[t].high,
                loss=float(losses[t]),
                loss_low=loss_of[t].low,
                loss_high=loss_of[t].high,
                focal_point=focal_of[t].value,
                focal_low=focal_of[t].low,
                focal_high=focal_of[t].high,
                sticks_to=_sticks_to(focal_of[t], u),
                severity=severity_of(float(losses[t])),
                shift=float(after[t] - before),
                compression=float(spread_after[t] / spread) if spread > 0 else None,
                near_u_05=float(near[0][t]),
                near_u_10=float(near[1][t]),
                p_pull=float(p_pull[t]),
                p_slope=float(p_slope[t]),
            )
        )
    return effects


def near_u(points: Points, moments: Moments) -> list[np.ndarray]:
    """For each ε in ``NEAR_U``: (T,) the share of points with |Sim − u| ≤ ε."""
    return [moments.of_draws(name).sum(axis=1) / points.count for name in PER_DRAW if name.startswith("near")]


def near_u_before(points: Points) -> list[float]:
    """The same without insertion."""
    distance = np.abs(points.before - points.u)
    return [float((distance <= epsilon).mean()) for epsilon in NEAR_U]


def crossed_resamples(points: Points, resamples: int, seed: int) -> np.ndarray:
    """(B, K, G) counts of each (draw, group of anchors) in B resamples; draws and groups are resampled independently.

    Draws that share a sentence are resampled together. A single group is not resampled.
    """
    draws = resample_clusters(np.unique(points.clusters, return_inverse=True)[1], resamples, seed)
    groups = points.group_count
    anchors = np.ones((resamples, 1)) if groups == 1 else resample_clusters(np.arange(groups), resamples, seed + 1)
    return draws[:, :, None] * anchors[:, None, :]


def drawn_controls(is_control: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """(B, C) indices of the controls in each resample: they are a sample of the ordinary tokens, too."""
    controls = np.flatnonzero(is_control)
    return np.random.default_rng([seed, len(controls), 2]).choice(controls, size=(resamples, len(controls)))


def false_discovery(p_values: np.ndarray) -> np.ndarray:
    """Benjamini–Hochberg q-values: the smallest false-discovery rate at which each hypothesis would be rejected."""
    if len(p_values) == 0:
        return p_values
    q: np.ndarray = scipy.stats.false_discovery_control(p_values, method="bh")
    return q


def _p_values(resampled: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """(B, T) values, larger being more extreme -> (T,). An undefined resample counts in favour of H0."""
    controls = np.take_along_axis(resampled, drawn, axis=1)
    defined = np.isfinite(controls).all(axis=1, keepdims=True)
    bound = np.percentile(np.where(defined, controls, 0.0), CONTROL_PERCENTILE, axis=1, keepdims=True)
    beyond = (np.nan_to_num(resampled, nan=-np.inf) > bound) & defined
    return (1 + (~beyond).sum(axis=0)) / (len(resampled) + 1)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _sticks_to(focal: Estimate, u: float) -> str | None:
    if focal.low is None or focal.high is None:
        return None
    return "u" if focal.low <= u <= focal.high else f"{focal.value:.3f}"


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
