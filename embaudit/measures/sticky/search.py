"""The search: a random pilot with all draws, a prediction for every other token, and draws for those predicted worst.

A token's input embedding says much about the effect of inserting it, before anything is encoded: ridge regression on a
pilot reaches, out of fold, Spearman's ρ of .70 (slope) and .71 (pull) on all-MiniLM-L6-v2. So the budget goes to the
tokens that are predicted worst, in stages: each stage doubles the draws of fewer tokens. Scores from the draws so far
and predictions are combined with weights fitted on the pilot. The pilot also tells what such a search misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from embaudit.measures.sticky.moments import PROTOCOLS, Moments, Scores, score
from embaudit.measures.sticky.points import Points
from embaudit.measures.sticky.tables import Protocol
from embaudit.statistics import exact_share, spearman, spearman_interval

# A regression on fewer tokens would fit their noise.
MIN_PILOT = 100
FOLDS = 5
# Of the ridge regression, for standardised columns: from hardly any shrinkage to nearly full.
PENALTIES = tuple(np.logspace(-1, 6, 15).tolist())
ROWS_PER_STEP = 16_384
# Which tokens go on: two by retention for each one by definition, since severity is graded on retention.
TURNS = ("slope", "pull", "slope")
RELIABILITY_SPLITS = 20


def predict(features: np.ndarray, pilot: np.ndarray, scores: Scores, seed: int) -> Scores:
    """Predict pull and slope of every token from its input embedding; of the pilot's own tokens, out of fold.

    Ridge regression on the embedding and its norm; the penalty is chosen by leave-one-out within each training set.

    Args:
        features: (V, d) the input embedding matrix.
        pilot: rows of the P tokens whose scores are known.
        scores: the scores of the pilot.

    Returns:
        (V,) each; NaN if the pilot has too few defined scores to learn from.
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def columns(rows: np.ndarray) -> np.ndarray:
        return np.column_stack([rows, np.linalg.norm(rows, axis=1)])

    found = []
    for known in (scores.pull, scores.slope):
        defined = np.isfinite(known)
        values = np.full(len(features), np.nan)
        if defined.sum() >= MIN_PILOT:
            model = make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
            learned, target = columns(features[pilot[defined]]), known[defined]
            model.fit(learned, target)
            # In parts: the matrix of a large model fills much of the memory, and must not be there three times.
            for start in range(0, len(features), ROWS_PER_STEP):
                part = slice(start, start + ROWS_PER_STEP)
                values[part] = model.predict(columns(features[part]))
            folds = KFold(FOLDS, shuffle=True, random_state=seed % 2**32)
            values[pilot[defined]] = cross_val_predict(model, learned, target, cv=folds)
        found.append(values)
    return Scores(*found)


def weigh_evidence(pilot: Sequence[np.ndarray], truth: np.ndarray, evidence: Sequence[np.ndarray]) -> np.ndarray:
    """Combine several noisy readings of a score, by least squares on the pilot, whose scores are known.

    Args:
        pilot: each reading of the pilot's tokens, (P,); evidence: the same readings of other tokens, (T,).
        truth: (P,) the scores of the pilot.

    Returns:
        (T,). The last reading unchanged, if too few tokens of the pilot have all of them.
    """
    known = np.column_stack([np.ones(len(truth)), *pilot])
    defined = np.isfinite(known).all(axis=1) & np.isfinite(truth)
    if defined.sum() < MIN_PILOT:
        return np.asarray(evidence[-1])
    weights = np.linalg.lstsq(known[defined], truth[defined], rcond=None)[0]
    blend: np.ndarray = np.column_stack([np.ones(len(evidence[0])), *evidence]) @ weights
    return blend


@dataclass(frozen=True)
class Stage:
    """The pilot's readings at one stage of the search, from which the scores of other tokens are estimated."""

    predicted: Scores
    measured: Scores | None
    truth: Scores

    def judge(self, predicted: Scores, measured: Scores | None) -> Scores:
        """Expected scores of other tokens, from their predicted and, if they have draws, their measured scores."""
        if measured is None or self.measured is None:
            return predicted
        return Scores(
            *(
                weigh_evidence([known, drawn], truth, [guess, seen])
                for known, drawn, truth, guess, seen in (
                    (self.predicted.pull, self.measured.pull, self.truth.pull, predicted.pull, measured.pull),
                    (self.predicted.slope, self.measured.slope, self.truth.slope, predicted.slope, measured.slope),
                )
            )
        )

    def of_pilot(self) -> Scores:
        return self.judge(self.predicted, self.measured)


@dataclass(frozen=True)
class Cut:
    """The mildest values that were kept: a token survives with at least this pull, or at most this slope.

    None if no token was kept by that value: if no point lies below u, pull is undefined.
    """

    pull: float | None
    slope: float | None

    def survivors(self, scores: Scores) -> np.ndarray:
        """(T,) bool: which tokens would have been kept."""
        by_pull = scores.pull >= (np.inf if self.pull is None else self.pull)
        by_slope = scores.slope <= (-np.inf if self.slope is None else self.slope)
        return np.asarray(by_pull | by_slope)


def keep_worst(scores: Scores, keep: int) -> tuple[np.ndarray, Cut]:
    """Indices of ``keep`` tokens (fewer if there are no more), ascending, and the cut that they passed.

    Takes the worst by each score in turn (``TURNS``), so that neither protocol crowds the other out.
    """
    worst_first = {name: iter(_worst_first(getattr(scores, name), sign)) for name, sign in (("slope", 1), ("pull", -1))}
    taken: set[int] = set()
    mildest: dict[str, float] = {}
    for name in cycle(TURNS):
        if len(taken) == keep or not worst_first:
            break
        token = next(worst_first.get(name, iter(())), None)
        if token is None:
            worst_first.pop(name, None)
        else:
            taken.add(token)
            mildest[name] = float(getattr(scores, name)[token])
    return np.array(sorted(taken), dtype=np.int64), Cut(mildest.get("pull"), mildest.get("slope"))


def _worst_first(values: np.ndarray, sign: int) -> list[int]:
    order = np.argsort(sign * values, kind="stable")
    return [int(token) for token in order[np.isfinite(values[order])]]


@dataclass(frozen=True)
class MissRate:
    """How many of the tokens that belong on a shortlist the search would have missed.

    Attributes:
        belonging: tokens of the pilot that are on the shortlist, by all their draws.
        missed: those of them that some stage would have dropped.
        low, high: 95 % Clopper–Pearson interval of missed/belonging; None if none belongs.
    """

    belonging: int
    missed: int
    low: float | None
    high: float | None

    @property
    def rate(self) -> float | None:
        return self.missed / self.belonging if self.belonging else None


def miss_rate(belongs: np.ndarray, survives: np.ndarray) -> MissRate:
    """Miss rate over the pilot.

    Args:
        belongs: (T,) bool, on the shortlist by all draws.
        survives: (T,) bool, would have passed every cut.
    """
    belonging, missed = int(belongs.sum()), int((belongs & ~survives).sum())
    if belonging == 0:
        return MissRate(0, 0, None, None)
    return MissRate(belonging, missed, *exact_share(missed, belonging))


@dataclass(frozen=True)
class RankAgreement:
    """Spearman's ρ between two readings of the same tokens, with its 95 % interval; None if undefined."""

    rho: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, rhos: Sequence[float | None], tokens: int) -> RankAgreement:
        """The mean of several ρ over the same tokens."""
        if any(rho is None for rho in rhos):
            return cls(None, None, None)
        mean = float(np.mean([rho for rho in rhos if rho is not None]))
        return cls(mean, *(spearman_interval(mean, tokens) or (None, None)))


def agreement(first: np.ndarray, second: np.ndarray) -> RankAgreement:
    """Agreement of two readings, (T,) each, over the tokens that have both."""
    defined = np.isfinite(first) & np.isfinite(second)
    return RankAgreement.of([spearman(first[defined], second[defined])], int(defined.sum()))


def halves(points: Points, moments: Moments, seed: int) -> list[tuple[Scores, Scores]]:
    """Scores from two halves that share neither draws nor anchors, for each of several ways of halving.

    Empty with fewer than four draws or only one group of anchors: halves that share their anchors also agree on what a
    token has in common with these sentences, which is not a property of the token.
    """
    draws, groups = len(points.draws), points.group_count
    if draws < 4 or groups < 2:
        return []
    generator = np.random.default_rng([seed, draws, groups])
    found = []
    for _ in range(RELIABILITY_SPLITS):
        order, dealt = generator.permutation(draws), generator.permutation(groups)
        sides = []
        for side in (0, 1):
            weights = np.zeros((draws, groups))
            weights[np.ix_(order[side::2][: draws // 2], dealt[side::2][: groups // 2])] = 1
            sides.append(score(points, moments, weights))
        found.append((sides[0], sides[1]))
    return found


def reliability(split: Sequence[tuple[Scores, Scores]]) -> dict[Protocol, RankAgreement]:
    """Mean agreement of halves, each with half of the draws; two full sets of draws would agree better."""
    if not split:
        return {protocol: RankAgreement(None, None, None) for protocol in PROTOCOLS}
    found = {}
    for protocol in PROTOCOLS:
        pairs = [(one.of(protocol), other.of(protocol)) for one, other in split]
        found[protocol] = RankAgreement.of([agreement(*pair).rho for pair in pairs], len(pairs[0][0]))
    return found
