"""What validated tokens do to similarities, each number with its interval, against ordinary tokens.

pull, slope, loss and focal point are defined in ``embaudit.measures.sticky.scores`` (arXiv 2507.18171, §3, and
retention). Beside them, over the same points: shift = mean(after − before), compression = SD(after)/SD(before), and the
share of similarities within ε of u (the paper's definition of sticky, |Sim − u| ≤ ε).

p-values are for H0 "no more extreme than the controls' 95th percentile", on pairs that chose nothing: the share of
resamples in which the token does not pass the percentile of the controls in the same resample,
p = (1 + #{b: v_b not beyond q_b}) / (B + 1); Benjamini–Hochberg over a protocol's candidates makes q-values of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from embaudit.intervals import percentile_intervals, resample_clusters
from embaudit.measures.sticky.scores import MIN_VARIANCE, Severity, pull, retention, rho, severity
from embaudit.measures.sticky.validation import ValidationInputs

# H0: no more extreme than this share of ordinary tokens.
CONTROL_PERCENTILE = 95.0
NEAR_U = (0.05, 0.1)


@dataclass(frozen=True)
class Effect:
    """What a token does on the validation pairs, with 95 % intervals; None where undefined (0/0)."""

    points: int
    rho: float
    rho_0: float
    pull: float
    pull_low: float | None
    pull_high: float | None
    excess_pull: float
    slope: float
    slope_low: float | None
    slope_high: float | None
    loss: float
    loss_low: float | None
    loss_high: float | None
    focal_point: float | None
    focal_low: float | None
    focal_high: float | None
    sticks_to: str | None
    severity: Severity
    shift: float
    compression: float | None
    near_u_05: float
    near_u_10: float
    p_pull: float
    p_slope: float


def measure_effects(
    inputs: ValidationInputs, after: np.ndarray, is_control: np.ndarray, resamples: int, seed: int
) -> list[Effect]:
    """The effect of every token, in the order of ``after``.

    Intervals are percentiles of a bootstrap over sentence clusters; ρ_t, ρ_0 and the controls' medians are
    resampled together, so that what all tokens share does not widen them.

    Args:
        after: (T, P), candidates and controls.
        is_control: (T,) bool, the ordinary tokens that loss and excess are measured against.
    """
    before, u = inputs.before, inputs.u
    line, pulls = retention(before, after), pull(before, after, u)
    losses = 1 - line.slope / np.median(line.slope[is_control])
    excess = pulls - np.median(pulls[is_control])
    rho_t, rho_0 = rho(after, before, u), float(rho(before, before, u))
    near = near_u(after, u)

    weights = resample_clusters(inputs.clusters, resamples, seed)
    lines, pulls_b = retention(before, after, weights), pull(before, after, u, weights)
    pull_interval, slope_interval = percentile_intervals(pulls_b), percentile_intervals(lines.slope)
    loss_interval = percentile_intervals(1 - lines.slope / np.median(lines.slope[:, is_control], axis=1, keepdims=True))
    focal_interval = percentile_intervals(lines.focal_point)
    p_pull, p_slope = _p_values(pulls_b, is_control), _p_values(-lines.slope, is_control)
    # Rounding alone must not pass for a spread, as in ``retention``.
    spread = np.std(before) if np.var(before) > MIN_VARIANCE else 0.0
    effects = []
    for t in range(len(after)):
        focal, focal_low, focal_high = _number(line.focal_point[t]), *focal_interval[t]
        effects.append(
            Effect(
                points=after.shape[1],
                rho=float(rho_t[t]),
                rho_0=rho_0,
                pull=float(pulls[t]),
                pull_low=pull_interval[t][0],
                pull_high=pull_interval[t][1],
                excess_pull=float(excess[t]),
                slope=float(line.slope[t]),
                slope_low=slope_interval[t][0],
                slope_high=slope_interval[t][1],
                loss=float(losses[t]),
                loss_low=loss_interval[t][0],
                loss_high=loss_interval[t][1],
                focal_point=focal,
                focal_low=focal_low,
                focal_high=focal_high,
                sticks_to=_sticks_to(focal, focal_low, focal_high, u),
                severity=severity(float(losses[t])),
                shift=float(np.mean(after[t] - before)),
                compression=float(np.std(after[t]) / spread) if spread > 0 else None,
                near_u_05=float(near[0][t]),
                near_u_10=float(near[1][t]),
                p_pull=float(p_pull[t]),
                p_slope=float(p_slope[t]),
            )
        )
    return effects


def near_u(similarities: np.ndarray, u: float) -> list[np.ndarray]:
    """For each ε of ``NEAR_U``: the share of the points with |Sim − u| ≤ ε; (…, P) -> (…)."""
    distance = np.abs(similarities.astype(np.float64) - u)
    return [(distance <= epsilon).mean(axis=-1) for epsilon in NEAR_U]


def false_discovery(p_values: np.ndarray) -> np.ndarray:
    """Benjamini–Hochberg q-values: the smallest false-discovery rate at which each test would be reported."""
    if len(p_values) == 0:
        return p_values
    q: np.ndarray = scipy.stats.false_discovery_control(p_values, method="bh")
    return q


def _p_values(resampled: np.ndarray, is_control: np.ndarray) -> np.ndarray:
    """(B, T) values, larger being more extreme -> (T,). An undefined resample counts for H0."""
    controls = resampled[:, is_control]
    defined = np.isfinite(controls).all(axis=1, keepdims=True)
    bound = np.percentile(np.where(defined, controls, 0.0), CONTROL_PERCENTILE, axis=1, keepdims=True)
    beyond = (np.nan_to_num(resampled, nan=-np.inf) > bound) & defined
    return (1 + (~beyond).sum(axis=0)) / (len(resampled) + 1)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _sticks_to(focal: float | None, low: float | None, high: float | None, u: float) -> str | None:
    if focal is None or low is None or high is None:
        return None
    return "u" if low <= u <= high else f"{focal:.3f}"
