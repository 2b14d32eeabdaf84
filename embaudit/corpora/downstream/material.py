"""Samples the texts of a corpus that a task uses, by seed and content.

What a cut-off on one scale becomes on another, from the similarities that two checkpoints give to the same pairs.

A cut-off t of the first scale x lets P(x > t) of some kind of pairs through. On the second scale y, the same share is
let through by the t′ with

    P(y > t′) = P(x > t)   ⇔   P(x ≤ t, y > t′) = P(x > t, y ≤ t′) .

The interval of t′ holds every number at which the pairs of the two kinds on the right, those that change sides, do not
differ in number by McNemar's test (mid-p, Fagerland, Lydersen and Laake 2013). It is paired, and assumes no
distribution: the 1 % quantile of a few hundred pairs, of which a bootstrap knows too little, has the wide interval that
it deserves. Units of pairs that share a text are counted once, by the sign of their difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from embaudit.corpora.draw import content_order, pair_text
from embaudit.statistics import CONFIDENCE, MIN_UNITS, Interval, exact_share
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

# Both halves must have items.
MIN_ITEMS = 4


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with their classes; ``left_out``: classes with too few texts."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgements:
    """Documents, and queries with the grades (above 0) of their relevant documents by index.

    Attributes:
        own: for each query, the documents that are the query itself and are not ranked for it; empty: none has any.
    """

    documents: tuple[str, ...]
    queries: tuple[str, ...]
    relevant: tuple[Mapping[int, float], ...]
    own: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True)
class GradedPairs:
    """Sentence pairs with human similarity scores.

    Attributes:
        data_sets: of each pair, the data set on whose scale its score is; empty: all are on one scale.
        left_out: data sets with too few pairs, or with one score for all.
    """

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    scores: tuple[float, ...]
    data_sets: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def of(self, places: Sequence[int]) -> GradedPairs:
        """Some of the pairs, of one data set."""
        firsts, seconds = (tuple(side[place] for place in places) for side in (self.firsts, self.seconds))
        return GradedPairs(firsts, seconds, tuple(self.scores[place] for place in places))


def pick_labelled(texts: Sequence[tuple[str, str | None]], most: int, folds: int, seed: int) -> LabelledTexts:
    """At most ``most`` labelled texts; a class needs ``folds`` members in each half.

    Raises:
        NotMeasurable: if fewer than two classes are left.
    """
    known = [(text, label) for text, label in texts if label is not None]
    if not known:
        raise NotMeasurable("none of its texts has a label.")
    picked = [known[place] for place in content_order([text for text, _ in known], seed)[:most]]
    sizes = Counter(label for _, label in picked)
    kept = {label for label, size in sizes.items() if size >= 2 * folds}
    if len(kept) < 2:
        raise NotMeasurable(
            f"{len(sizes)} class{'es' if len(sizes) > 1 else ''} among {len(picked)} labelled texts, {len(kept)} of "
            f"them with at least {2 * folds} texts: cross-validation in two halves needs two such classes."
        )
    chosen = [(text, label) for text, label in picked if label in kept]
    return LabelledTexts(
        tuple(text for text, _ in chosen), tuple(label for _, label in chosen), tuple(sorted(set(sizes) - kept))
    )


def pick_judged(
    documents: Sequence[str],
    queries: Sequence[tuple[str, Mapping[int, float]]],
    most_documents: int,
    most_queries: int,
    seed: int,
    own: Sequence[Collection[int]] = (),
) -> Judgements:
    """At most ``most_queries`` queries, all their relevant documents, and others up to ``most_documents``.

    Args:
        own: as in ``Judgements``.

    Raises:
        NotMeasurable: if there are too few queries or documents.
    """
    asked = content_order([text for text, _ in queries], seed)[:most_queries]
    picked = [queries[place] for place in asked]
    needed = {place for _, relevant in picked for place in relevant}
    order = content_order(documents, seed)
    others = {*[place for place in order if place not in needed][: max(most_documents - len(needed), 0)]}
    places = [place for place in order if place in needed or place in others]
    if len(picked) < MIN_ITEMS or len(places) < 2:
        raise NotMeasurable(f"{len(picked)} judged queries and {len(places)} documents are too few to rank and split.")
    new = {place: index for index, place in enumerate(places)}
    return Judgements(
        tuple(documents[place] for place in places),
        tuple(text for text, _ in picked),
        tuple({new[place]: grade for place, grade in sorted(relevant.items())} for _, relevant in picked),
        tuple(frozenset(new[place] for place in own[query] if place in new) for query in asked) if own else (),
    )


def pick_graded(
    pairs: Sequence[tuple[str, str, float | None]], most: int, seed: int, data_sets: Sequence[str | None] = ()
) -> GradedPairs:
    """At most ``most`` pairs with a score, from each data set in turn, so that small ones are not drowned.

    Args:
        data_sets: of each pair; empty: there is only one.

    Raises:
        NotMeasurable: if there are too few in every data set, or all have the same score.
    """
    named = [name or "" for name in data_sets] or [""] * len(pairs)
    scored = [(*pair, name) for pair, name in zip(pairs, named, strict=True) if pair[2] is not None]
    taken: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    order = content_order([pair_text(first, second) for first, second, *_ in scored], seed)
    for rank, place in enumerate(order):
        turns.append((taken[scored[place][-1]], rank))
        taken[scored[place][-1]] += 1
    picked = [scored[order[rank]] for _, rank in sorted(turns)[:most]]
    by_set = {name: [score for *_, score, own in picked if own == name] for name in dict.fromkeys(named)}
    kept = {name for name, scores in by_set.items() if len(scores) >= MIN_ITEMS and len(set(scores)) > 1}
    if not kept:
        raise NotMeasurable(f"{len(picked)} scored pairs are too few, or all have the same score.")
    firsts, seconds, scores, names = zip(*[one for one in picked if one[-1] in kept], strict=True)
    return GradedPairs(
        firsts, seconds, scores, names if len(by_set) > 1 else (), tuple(name for name in by_set if name not in kept)
    )


def transferred(
    first: np.ndarray, second: np.ndarray, units: np.ndarray, cut_off: float, ends: Interval | None = None
) -> Estimate:
    """The cut-off on the second scale that lets the same share through.

    No value if the cut-off lets all pairs or none through; no interval below ten units.

    Args:
        first: (n,) similarities on the scale of the cut-off.
        second: (n,) of the same pairs on the other scale.
        units: (n,) pairs of one unit share a text.
        ends: the least and the largest similarity; where too few pairs bound the cut-off, the interval ends there.
    """
    n, passing = len(first), int((first > cut_off).sum())
    if not 0 < passing < n:
        return Estimate(None)
    x, y = np.sort(first), np.sort(second)
    # The same way between the two values around it: the cut-off itself, if both scales are the same.
    rank = n - passing
    between = (cut_off - x[rank - 1]) / (x[rank] - x[rank - 1])
    value = float(y[rank - 1] + between * (y[rank] - y[rank - 1]))
    if len(np.unique(units)) < MIN_UNITS:
        return Estimate(value)
    steps = np.flatnonzero(_is_possible(*_changing(first, second, units, cut_off)))
    # Of the n + 1 numbers of pairs that may fail at the new cut-off, those from steps[0] to steps[-1].
    low, high = int(steps[0]), int(steps[-1])
    least = float(y[low - 1]) if low else None if ends is None else ends[0]
    most = float(y[high]) if high < n else None if ends is None else ends[1]
    if least is None or most is None or least >= most:
        return Estimate(value)
    return Estimate.reaching(value, (least, most))


def lets_other_share_through(first: np.ndarray, second: np.ndarray, units: np.ndarray, cut_off: float) -> bool:
    """Whether a cut-off clearly lets another share through on the second scale, by the same test."""
    _, places = np.unique(units, return_inverse=True)
    net = np.bincount(places, weights=(second > cut_off).astype(np.int64) - (first > cut_off))
    return not _is_possible(np.array([(net > 0).sum()]), np.array([(net < 0).sum()]))[0]


def _changing(
    first: np.ndarray, second: np.ndarray, units: np.ndarray, cut_off: float
) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) units of which more pairs come to pass than cease to, and the reverse, if the lowest 0 … n fail."""
    _, places = np.unique(units, return_inverse=True)
    # At first every pair passes, so those change that did not; each pair that fails is one less.
    net = np.bincount(places, weights=first <= cut_off).astype(np.int64)
    more, fewer = [int((net > 0).sum())], [0]
    for unit in places[np.argsort(second, kind="stable")]:
        net[unit] -= 1
        more.append(more[-1] - (net[unit] == 0))
        fewer.append(fewer[-1] + (net[unit] == -1))
    return np.array(more), np.array(fewer)


def _is_possible(more: np.ndarray, fewer: np.ndarray) -> np.ndarray:
    """Whether as many may come to pass as cease to: mid-p of a fair coin's tails, two-sided, above 5 %."""
    total, least = more + fewer, np.minimum(more, fewer)
    mid_p = scipy.stats.binom.cdf(least, total, 0.5) - scipy.stats.binom.pmf(least, total, 0.5) / 2
    return np.asarray((2 * mid_p > 1 - CONFIDENCE) | (more == fewer))


def share_of(is_so: np.ndarray, units: np.ndarray) -> Estimate:
    """The share of (n,) pairs, with an exact interval for as many trials as there are units; none below ten units.

    Exact, because the shares are often 0 or nearly, where resamples are all alike.
    """
    if not len(is_so):
        return Estimate(None)
    share, trials = float(is_so.mean()), len(np.unique(units))
    if trials < MIN_UNITS:
        return Estimate(share)
    return Estimate.reaching(share, exact_share(round(share * trials), trials))


def best_f1(matching: np.ndarray, unrelated: np.ndarray) -> float:
    """The cut-off with the best F₁ for telling matching from unrelated pairs, halfway between two similarities.

    F₁ = 2 TP / (2 TP + FP + FN). Of equally good ones, the lowest.
    """
    values = np.sort(np.concatenate([matching, unrelated]))
    middles = (values[1:] + values[:-1]) / 2
    kept, wrong = (len(some) - np.searchsorted(np.sort(some), middles, side="right") for some in (matching, unrelated))
    return float(middles[int(np.argmax(2 * kept / (kept + wrong + len(matching))))])
