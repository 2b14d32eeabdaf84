"""Verdicts on candidates: the adaptive threshold (arXiv 2507.18171, §4.3), and rows made of effects and thresholds.

v > Q3 + 0.7·IQR if large values are sticky (pull, the reference value), v < Q1 − 0.7·IQR for the slope; linear
quantiles over a protocol's own shortlist. Severity grades the effect in absolute terms: an outlier can be negligible.
The rows are those of ``sticky_validation``, ``sticky_summary`` and ``sticky_severity``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from embaudit.measures.sticky.effects import Effect, false_discovery
from embaudit.measures.sticky.moments import PROTOCOLS, Protocol
from embaudit.measures.sticky.plan import SearchFound
from embaudit.measures.sticky.prevalence import Prevalence
from embaudit.words.estimate import Estimate

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


def severity_rows(found: Sequence[Prevalence]) -> list[dict[str, Any]]:
    """Rows of ``sticky_severity``."""
    return [
        {
            "severity": one.severity,
            "least_loss": one.least_loss,
            "validated": one.validated,
            "confirmed": one.confirmed,
            "estimated": one.estimated,
            "estimated_low": one.low,
            "estimated_high": one.high,
            "is_capped": one.low is not None and one.low > one.validated,
        }
        for one in found
    ]


def _agreement(agreement: Mapping[str, float | None]) -> Estimate:
    return Estimate(agreement["rho"], agreement["low"], agreement["high"])


def _q_values(judged: TokenEffects, protocol: Protocol) -> dict[int, float]:
    listed = sorted(judged.shortlists[protocol])
    p_values = [
        judged.effects[token].p_pull if protocol == "definition" else judged.effects[token].p_slope for token in listed
    ]
    return dict(zip(listed, false_discovery(np.array(p_values)).tolist(), strict=True))
