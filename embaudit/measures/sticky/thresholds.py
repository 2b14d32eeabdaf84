"""The adaptive threshold: which candidates stand out from the other candidates (arXiv 2507.18171, §4.3).

v > Q3 + 0.7·IQR if large values are sticky (pull, the reference value), v < Q1 − 0.7·IQR for the slope; linear
quantiles over a protocol's own shortlist. Severity grades the effect in absolute terms: an outlier can be negligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from embaudit.measures.sticky.effects import Effect
from embaudit.measures.sticky.scores import Protocol

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
