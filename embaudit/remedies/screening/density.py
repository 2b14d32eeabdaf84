"""The density of severe tokens in a text, and how unusual it is.

For a text of n tokens (without special tokens, the prompt, and anything beyond the length limit), k of them severe:

    score  Σ loss of its severe tokens / n: their share of the text, weighted by loss
    tail   P(X ≥ k), X binomial with n tokens at the rate of ordinary text; bounded from above by
           b(k) · (k + 1)(1 − p) / (k + 1 − (n + 1)p)   (Feller 1968, An Introduction to Probability Theory, VI.3)

A text is flagged if its tail, times the number of texts (Bonferroni), is at most ``FALSE_ALARMS``, if it has at least
``MIN_COPIES`` severe tokens (a single one hardly moves a text), and if its score reaches the caller's minimum. One file
of ordinary texts in a hundred then has a flagged text, provided that severe tokens occur independently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import lgamma, log, log1p

from embaudit.statistics.intervals import exact_share

FALSE_ALARMS = 0.01
MIN_COPIES = 2
# ⌈words/10⌉ copies of a token with loss .45 in 100 words have a score of .03, and cost retrieval four points
# (docs/methods.md).
MIN_SCORE = 0.01


@dataclass(frozen=True)
class OrdinaryRate:
    """The rate of severe tokens in ordinary text.

    Attributes:
        tokens: number of tokens in the ordinary texts.
        severe: number of severe ones among them.
    """

    tokens: int
    severe: int

    @property
    def most(self) -> float:
        """Upper end of the 95 % Clopper–Pearson interval, so that few ordinary texts do not cause false alarms."""
        return exact_share(self.severe, self.tokens)[1]


def score(counts: Mapping[int, int], losses: Mapping[int, float], read: int) -> float:
    """The share of ``read`` tokens that are severe, each weighted by its loss."""
    return sum(losses[token_id] * times for token_id, times in counts.items()) / read


def log_tail(k: int, n: int, rate: float) -> float:
    """Natural logarithm of an upper bound on the probability of k or more severe tokens among n; at most 0."""
    if k <= 0 or rate >= 1 or k + 1 <= (n + 1) * rate:
        return 0.0
    if rate <= 0:
        return float("-inf")
    binomial = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(rate) + (n - k) * log1p(-rate)
    return min(binomial + log((k + 1) * (1 - rate) / (k + 1 - (n + 1) * rate)), 0.0)


def is_unusual(log_of_tail: float, texts: int) -> bool:
    """Whether such a tail occurs by chance among this many ordinary texts in at most one file of a hundred."""
    return log_of_tail + log(texts) <= log(FALSE_ALARMS)
