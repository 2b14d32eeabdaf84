"""Sequential search: successive halving over (pair, operator) draws, and what it misses.

A random *pilot* of the tokens gets all draws. It orders the draws (the ones that say most come first) and stands in
for the tokens that were dropped: of the pilot's tokens that belong on a shortlist, the share that the halving would
have dropped estimates the share that it did drop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.intervals import exact_share
from embaudit.measures.sticky.scan import ScanInputs, ScanScores, score_tokens
from embaudit.measures.sticky.scores import SEVERITY_FROM_LOSS, Protocol, pull, retention
from embaudit.measures.sticky.thresholds import adaptive_threshold
from embaudit.measures.sticky.validation import ValidationInputs

# Correlations over fewer tokens would order the draws by chance.
MIN_FOR_ORDER = 30
# Draws that come first are chosen one by one; behind them the order matters little.
CHOSEN_DRAWS = 6


def order_draws(inputs: ScanInputs, after: np.ndarray) -> list[int]:
    """All draws, those first whose scores agree best with the scores from all of them.

    Greedy: each next draw is the one that, with those before it, correlates best (Pearson, summed over pull and
    slope) with the full scores of the pilot. One draw differs much from another: on STS Benchmark and
    all-MiniLM-L6-v2 the worst of fifteen draws finds a fifth of the least retaining 2 % among its worst 10 %,
    the best one all of them (benchmarks/README.md).

    Args:
        after: (T, K, S), all draws of the pilot.
    """
    every = list(range(len(inputs.draws)))
    if len(after) < MIN_FOR_ORDER:
        return every
    full = score_tokens(inputs, every, after)
    order: list[int] = []
    while len(order) < min(CHOSEN_DRAWS, len(every)):
        rest = [draw for draw in every if draw not in order]
        agreement = [_agreement(score_tokens(inputs, [*order, d], after[:, [*order, d]]), full) for d in rest]
        order.append(rest[int(np.argmax(agreement))])
    return order + [draw for draw in every if draw not in order]


def _agreement(scores: ScanScores, full: ScanScores) -> float:
    pairs = ((scores.pull, full.pull), (scores.slope, full.slope))
    found = [np.corrcoef(a, b)[0, 1] if np.std(a) > 0 and np.std(b) > 0 else 0.0 for a, b in pairs]
    return float(np.nansum(found))


@dataclass(frozen=True)
class Cut:
    """The mildest values that were kept: a token survives with more pull, or with less slope.

    None where no token was kept for that value: where the draws spent have no point below u, pull is undefined.
    """

    pull: float | None
    slope: float | None

    def survivors(self, scores: ScanScores) -> np.ndarray:
        """(T,) bool: who would have been kept."""
        by_pull = scores.pull >= (np.inf if self.pull is None else self.pull)
        by_slope = scores.slope <= (-np.inf if self.slope is None else self.slope)
        return np.asarray(by_pull | by_slope)


def keep_worst(scores: ScanScores, keep: int) -> tuple[np.ndarray, Cut]:
    """Indices of ``keep`` tokens (fewer if there are no more), ascending, and the cut that they passed.

    The most pulling and the least retaining by turns, so that neither protocol crowds the other out.
    """
    worst_first = [
        order[np.isfinite(values[order])]
        for values, order in (
            (scores.pull, np.argsort(-scores.pull, kind="stable")),
            (scores.slope, np.argsort(scores.slope, kind="stable")),
        )
    ]
    taken: dict[int, None] = {}
    last: list[int | None] = [None, None]
    for turn in range(len(scores.pull)):
        for side, order in enumerate(worst_first):
            if len(taken) < keep and turn < len(order):
                taken.setdefault(int(order[turn]))
                last[side] = int(order[turn])
    cut = Cut(
        None if last[0] is None else float(scores.pull[last[0]]),
        None if last[1] is None else float(scores.slope[last[1]]),
    )
    return np.array(sorted(taken), dtype=np.int64), cut


@dataclass(frozen=True)
class MissRate:
    """How many of the tokens that belong on a shortlist the search would have missed.

    Attributes:
        belonging: tokens of the pilot that are on the shortlist by all their draws.
        missed: those of them that some rung would have dropped.
        low, high: 95 % Clopper–Pearson interval of missed/belonging; None where none belongs.
    """

    belonging: int
    missed: int
    low: float | None
    high: float | None

    @property
    def rate(self) -> float | None:
        return self.missed / self.belonging if self.belonging else None


def miss_rate(belongs: np.ndarray, survives: np.ndarray) -> MissRate:
    """Count over the pilot.

    Args:
        belongs: (T,) bool, on the shortlist by all draws.
        survives: (T,) bool, would have passed every cut.
    """
    belonging, missed = int(belongs.sum()), int((belongs & ~survives).sum())
    if belonging == 0:
        return MissRate(0, 0, None, None)
    return MissRate(belonging, missed, *exact_share(missed, belonging))


def would_survive(
    inputs: ScanInputs, after: np.ndarray, order: Sequence[int], cuts: Sequence[tuple[int, Cut]]
) -> np.ndarray:
    """(T,) bool: whether tokens of the pilot would have passed every rung.

    Args:
        after: (T, K, S), draws in their natural order.
        order: the order in which the rungs spend the draws.
        cuts: (draws spent, cut) of each rung that dropped tokens.
    """
    alive = np.ones(len(after), dtype=bool)
    for spent, cut in cuts:
        draws = sorted(order[:spent])
        alive &= cut.survivors(score_tokens(inputs, draws, after[:, draws]))
    return alive


def grade_is_open(losses: np.ndarray, resampled: np.ndarray) -> np.ndarray:
    """(T,) bool: tokens within two standard errors of the border between weak and moderate, or moderate and strong.

    Args:
        losses: (T,) on the common pairs; resampled: (B, T), with the controls resampled together.
    """
    error = np.nanstd(resampled, axis=0)
    borders = [least for least, name in SEVERITY_FROM_LOSS if name in ("strong", "moderate")]
    return np.any([np.abs(losses - border) < 2 * error for border in borders], axis=0)


def reaches_threshold(
    protocol: Protocol, values: np.ndarray, resampled: np.ndarray, threshold: float | None
) -> np.ndarray:
    """(T,) bool: candidates that more pairs could still put beyond the threshold; all without one.

    A candidate stops when it is two standard errors short of it. The error is that of its distance to its peers
    (resample by resample, their mean is taken off): the threshold moves with the pairs as the candidates do.

    Args:
        values: (T,) on the common pairs; resampled: (B, T) of the same candidates.
    """
    if threshold is None:
        return np.ones(len(values), dtype=bool)
    error = np.nanstd(resampled - np.nanmean(resampled, axis=1, keepdims=True), axis=0)
    if protocol == "definition":
        return values + 2 * error > threshold
    return values - 2 * error < threshold


def undecided_tokens(
    common: ValidationInputs,
    token_ids: np.ndarray,
    after: np.ndarray,
    shortlists: Mapping[Protocol, Sequence[int]],
    controls: Sequence[int],
    weights: np.ndarray,
) -> list[int]:
    """Candidates that more pairs could still flag, or call moderate or strong; ascending.

    Args:
        common: the points that every candidate has.
        token_ids: (T,) ascending, candidates and controls; after: (T, C) their similarities.
        weights: (B, C) resamples of the points.
    """
    slopes, resampled = retention(common.before, after).slope, retention(common.before, after, weights).slope
    is_control = np.isin(token_ids, controls)
    losses = 1 - slopes / np.median(slopes[is_control])
    open_grade = grade_is_open(losses, 1 - resampled / np.median(resampled[:, is_control], axis=1, keepdims=True))
    found = set(token_ids[open_grade & ~is_control].tolist())
    for protocol, tokens in shortlists.items():
        listed = np.array(tokens, dtype=np.int64)
        places = np.searchsorted(token_ids, listed)
        if protocol == "definition":
            values = pull(common.before, after[places], common.u)
            spread = pull(common.before, after[places], common.u, weights)
        else:
            values, spread = slopes[places], resampled[:, places]
        threshold = adaptive_threshold(values, above=protocol == "definition")
        found |= set(listed[reaches_threshold(protocol, values, spread, threshold)].tolist())
    return sorted(found)
