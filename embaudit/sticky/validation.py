"""Validation of shortlisted tokens on fresh pairs, against ordinary tokens, with intervals and two verdicts.

The adaptive threshold compares candidates with each other (arXiv 2507.18171, §4.3: Q3 + 0.7·IQR); severity says
how large the effect is in itself. They are separate columns: a token can be flagged and negligible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.sticky.insertion import OPERATORS, make_draw
from embaudit.sticky.pairs import SentencePair
from embaudit.sticky.scan import TOKENS_PER_STEP, require_below_u, unit_rows
from embaudit.sticky.scores import PROTOCOLS, Protocol, Severity, pull, retention, rho, severity

if TYPE_CHECKING:
    from embaudit.checkpoint import Encoder

MEASURE_VERSION = 1
IQR_FACTOR = 0.7
# Quartiles of fewer candidates move with every single one.
FEWEST_FOR_THRESHOLD = 40
INTERVAL = (2.5, 97.5)
Verdict = Literal["sticky", "not_sticky", "no_threshold"]


@dataclass(frozen=True)
class ValidationInputs:
    """P points, one for each (pair, operator): operators are all three for each pair, or rotate over the pairs."""

    pairs: tuple[SentencePair, ...]
    points: tuple[tuple[int, str], ...]
    before: np.ndarray
    u: float

    @property
    def clusters(self) -> np.ndarray:
        """(P,) cluster of each point; pairs that share a sentence are one cluster, resampled together."""
        owner: dict[str, int] = {}
        cluster = list(range(len(self.pairs)))
        for index, pair in enumerate(self.pairs):
            for sentence in (pair.first, pair.second):
                if sentence in owner and cluster[owner[sentence]] != cluster[index]:
                    merged, gone = cluster[owner[sentence]], cluster[index]
                    cluster = [merged if name == gone else name for name in cluster]
                owner.setdefault(sentence, index)
        return np.unique([cluster[pair] for pair, _ in self.points], return_inverse=True)[1]


def prepare_validation(
    encoder: Encoder,
    pairs: Sequence[SentencePair],
    u: float,
    copies: int,
    seed: int,
    *,
    rotate_operators: bool,
) -> ValidationInputs:
    """Choose the points and encode what does not depend on the token.

    Raises:
        MeasureError: if no pair lies below u.
    """
    firsts = unit_rows(encoder.encode_texts([pair.first for pair in pairs])).astype(np.float64)
    cut = [make_draw(encoder.checkpoint, pair.second, "suffix", copies, seed).baseline for pair in pairs]
    seconds = unit_rows(encoder.encode_ids(cut)).astype(np.float64)
    similarity = np.einsum("pd,pd->p", firsts, seconds)
    require_below_u(similarity, u)
    points = tuple(
        (index, operator)
        for index in range(len(pairs))
        for operator in ((OPERATORS[index % len(OPERATORS)],) if rotate_operators else OPERATORS)
    )
    return ValidationInputs(tuple(pairs), points, similarity[[pair for pair, _ in points]], u)


def validate_tokens(
    encoder: Encoder,
    inputs: ValidationInputs,
    token_ids: np.ndarray,
    copies: int,
    seed: int,
    progress: Progress = no_progress,
) -> np.ndarray:
    """Similarities after insertion, (T, P) float32."""
    import torch

    firsts = unit_rows(encoder.encode_texts([pair.first for pair in inputs.pairs]))
    after = np.empty((len(token_ids), len(inputs.points)), dtype=np.float32)
    for place, (pair, operator) in enumerate(inputs.points):
        draw = make_draw(encoder.checkpoint, inputs.pairs[pair].second, operator, copies, seed)  # type: ignore[arg-type]
        first = torch.from_numpy(firsts[pair]).to(encoder.checkpoint.device)
        for start in range(0, len(token_ids), TOKENS_PER_STEP):
            part = token_ids[start : start + TOKENS_PER_STEP]
            vectors = torch.nn.functional.normalize(encoder.encode_dense(torch.from_numpy(draw.insert(part))), dim=1)
            after[start : start + len(part), place] = (vectors @ first).cpu().numpy()
            progress(len(part))
    return after


@dataclass(frozen=True)
class Effect:
    """What a token does on the validation pairs, with 95 % intervals; None where undefined (0/0)."""

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


def measure_effects(
    inputs: ValidationInputs, after: np.ndarray, is_control: np.ndarray, resamples: int, seed: int
) -> list[Effect]:
    """Pull, retention, loss and focal point of every token, in the order of ``after``.

    Intervals are percentiles of a bootstrap over sentence clusters; ρ_t, ρ_0 and the controls' medians are
    resampled together, so that what all tokens share does not widen them.

    Args:
        after: (T, P), candidates and controls.
        is_control: (T,) bool, the ordinary tokens that loss and excess are measured against.
    """
    before, u = inputs.before, inputs.u
    line, pulls = retention(before, after), pull(before, after, u)
    median_slope = np.median(line.slope[is_control])
    median_pull = np.median(pulls[is_control])
    losses = 1 - line.slope / median_slope
    rho_t, rho_0 = rho(after, before, u), float(rho(before, before, u))

    weights = _resample_clusters(inputs.clusters, resamples, seed)
    lines = retention(before, after, weights)
    pull_interval = _interval(pull(before, after, u, weights))
    slope_interval = _interval(lines.slope)
    loss_interval = _interval(1 - lines.slope / np.median(lines.slope[:, is_control], axis=1, keepdims=True))
    focal_interval = _interval(lines.focal_point)
    effects = []
    for t in range(len(after)):
        focal, low, high = _number(line.focal_point[t]), *focal_interval[t]
        effects.append(
            Effect(
                rho=float(rho_t[t]),
                rho_0=rho_0,
                pull=float(pulls[t]),
                pull_low=pull_interval[t][0],
                pull_high=pull_interval[t][1],
                excess_pull=float(pulls[t] - median_pull),
                slope=float(line.slope[t]),
                slope_low=slope_interval[t][0],
                slope_high=slope_interval[t][1],
                loss=float(losses[t]),
                loss_low=loss_interval[t][0],
                loss_high=loss_interval[t][1],
                focal_point=focal,
                focal_low=low,
                focal_high=high,
                sticks_to=_sticks_to(focal, low, high, u),
                severity=severity(float(losses[t])),
            )
        )
    return effects


@dataclass(frozen=True)
class Threshold:
    """The adaptive threshold of one protocol; ``value`` is None with too few candidates."""

    protocol: Protocol
    value: float | None
    candidates: int

    def verdict(self, effect: Effect) -> Verdict:
        """Whether a candidate stands out from the other candidates."""
        if self.value is None:
            return "no_threshold"
        v = validation_value(self.protocol, effect)
        stands_out = v > self.value if self.protocol == "definition" else v < self.value
        return "sticky" if stands_out else "not_sticky"


def validation_value(protocol: Protocol, effect: Effect) -> float:
    """v_t: pull under ``definition``, slope under ``retention``."""
    return effect.pull if protocol == "definition" else effect.slope


def adaptive_thresholds(shortlists: Mapping[Protocol, Sequence[Effect]]) -> list[Threshold]:
    """v > Q3 + 0.7·IQR for pull, v < Q1 − 0.7·IQR for the slope; linear quantiles over a protocol's own shortlist."""
    thresholds = []
    for protocol in PROTOCOLS:
        value, candidates = None, shortlists[protocol]
        if len(candidates) >= FEWEST_FOR_THRESHOLD:
            q1, q3 = np.quantile([validation_value(protocol, effect) for effect in candidates], [0.25, 0.75])
            reach = IQR_FACTOR * (q3 - q1)
            value = float(q3 + reach if protocol == "definition" else q1 - reach)
        thresholds.append(Threshold(protocol, value, len(candidates)))
    return thresholds


def _resample_clusters(clusters: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """(B, P): how often each point is in each resample of whole clusters."""
    count = int(clusters.max()) + 1
    generator = np.random.default_rng([seed, count])
    draws = generator.multinomial(count, np.full(count, 1 / count), size=resamples)
    return draws[:, clusters]


def _interval(values: np.ndarray) -> list[tuple[float | None, float | None]]:
    """Percentile interval of each column of (B, T); (None, None) where no resample is defined."""
    defined = np.isfinite(values).any(axis=0)
    safe = np.where(defined, values, 0.0)
    low, high = np.nanpercentile(safe, INTERVAL, axis=0)
    return [(float(a), float(b)) if ok else (None, None) for a, b, ok in zip(low, high, defined, strict=True)]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _sticks_to(focal: float | None, low: float | None, high: float | None, u: float) -> str | None:
    if focal is None or low is None or high is None:
        return None
    return "u" if low <= u <= high else f"{focal:.3f}"
