"""One verdict: what has to be done so that NEW's queries find what they should.

same index            vectors are the same within parity's limits, or those of half precision
new threshold only    NEW's queries find as much in OLD's index, and nine of ten first documents stay; or documents
                      have the same vectors, and queries, or texts of pairs, other ones
bridge holds          a linear map, or none, keeps so much of what NEW finds in OLD's index (``HOLDS``, unless set)
rebuild               none does
could not be told     an interval holds both answers, or there is none

What becomes of a cut-off: the number in NEW that lets as much through, and the decisions that change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from embaudit.corpora.downstream.material import best_f1, share_of, transferred
from embaudit.measures.quality.scale import LET_THROUGH, MIN_PAIRS
from embaudit.questions.switch.material import SwitchedPairs, SwitchedSearch
from embaudit.questions.switch.quality import SameText
from embaudit.questions.switch.search import MIXED, SearchOutcome
from embaudit.statistics import MIN_UNITS
from embaudit.words.estimate import Estimate, shown, with_interval

# So few units above a cut-off bound its interval from neither side (McNemar's mid-p of 5 against 0 is .03).
BOUNDED_BY = 5
# Unrelated pairs of queries with documents, or of documents: so many, that 1 % of them are some.
UNRELATED_PAIRS = 1_000
SEED = 0


@dataclass(frozen=True)
class ScaledPairs:
    """Pairs with the similarities of both.

    Attributes:
        old, new: (n,)
        is_matching, is_unrelated: (n,) of scored pairs, the top and the bottom fifth of the scale. Of searches, a query
            with a relevant document, and one with a random other document.
        units: (n,) pairs of one unit share a text.
        ends: the ends of the scales; None where they have none.
    """

    name: str
    old: np.ndarray
    new: np.ndarray
    is_matching: np.ndarray
    is_unrelated: np.ndarray
    units: np.ndarray
    ends: tuple[float, float] | None = (-1.0, 1.0)


@dataclass(frozen=True)
class CutOffTransfer:
    """One cut-off on one set of pairs.

    Attributes:
        old: the number in OLD.
        how: where it comes from.
        same_share: the number in NEW that lets the same share of unrelated pairs through.
        same_recall: the one that keeps the same share of matching pairs.
        let_through, kept: shares of unrelated and of matching pairs above the number, in OLD and, at the same number,
            in NEW.
        flips_at_old: share of all pairs on another side if the number stays.
        flips_at_new: likewise, if it becomes ``new``.
    """

    name: str
    pairs: int
    old: float
    how: str
    same_share: Estimate
    same_recall: Estimate
    let_through: tuple[Estimate, Estimate]
    kept: tuple[Estimate, Estimate]
    flips_at_old: Estimate
    flips_at_new: Estimate
    ends: tuple[float, float] | None

    @property
    def new(self) -> Estimate:
        """The transfer that is known best: by unrelated pairs, unless only the matching ones bound it."""
        return (
            self.same_share if self.is_told(self.same_share) or not self.is_told(self.same_recall) else self.same_recall
        )

    @property
    def by(self) -> str:
        """What ``new`` keeps the same."""
        return "share of unrelated pairs" if self.new is self.same_share else "recall of matching pairs"

    @property
    def has_moved(self) -> bool:
        """Whether the number's interval is clear of the old number."""
        new = self.new
        return new.low is not None and new.high is not None and not new.low <= self.old <= new.high

    def is_told(self, found: Estimate) -> bool:
        """Whether pairs bound a number from both sides."""
        if found.value is None or found.low is None or found.high is None:
            return False
        return self.ends is None or (found.low > self.ends[0] and found.high < self.ends[1])

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"new": asdict(self.new), "new_keeps_the_same": self.by, "has_moved": self.has_moved}


def transfer_cut_offs(scales: Sequence[ScaledPairs], given: Sequence[float] = ()) -> list[CutOffTransfer]:
    """Each given cut-off, or a default one, on each set of pairs that has enough of a kind."""
    found = []
    for scale in scales:
        kinds = [int(scale.is_unrelated.sum()), int(scale.is_matching.sum())]
        if max(kinds) < MIN_PAIRS:
            continue
        chosen = [(number, "given") for number in given] or [default_cut_off(scale)]
        found += [transfer(scale, number, how) for number, how in chosen]
    return found


def default_cut_off(scale: ScaledPairs) -> tuple[float, str]:
    """The number that lets 1 % of unrelated pairs through in OLD, or the best F₁ where 1 % of them are too few."""
    unrelated, matching = scale.old[scale.is_unrelated], scale.old[scale.is_matching]
    is_few = int(LET_THROUGH * len(np.unique(scale.units[scale.is_unrelated]))) < BOUNDED_BY
    if len(matching) >= MIN_PAIRS and len(unrelated) and (is_few or len(unrelated) < MIN_PAIRS):
        return best_f1(matching, unrelated), "best F₁ in OLD"
    number = float(np.quantile(unrelated, 1 - LET_THROUGH, method="inverted_cdf"))
    return number, "lets 1 % of unrelated pairs through in OLD"


def transfer(scale: ScaledPairs, number: float, how: str = "given") -> CutOffTransfer:
    """What one number of OLD becomes."""
    low, high, units = scale.is_unrelated, scale.is_matching, scale.units
    same = [transferred(scale.old[kind], scale.new[kind], units[kind], number, scale.ends) for kind in (low, high)]
    shares = [
        (share_of(scale.old[kind] > number, units[kind]), share_of(scale.new[kind] > number, units[kind]))
        for kind in (low, high)
    ]
    was = scale.old > number
    staying = CutOffTransfer(
        scale.name,
        len(was),
        number,
        how,
        same[0],
        same[1],
        shares[0],
        shares[1],
        share_of(was != (scale.new > number), units),
        Estimate(None),
        scale.ends,
    )
    value = staying.new.value
    if value is None:
        return staying
    return replace(staying, flips_at_new=share_of(was != (scale.new > value), units))


def scales_of(pairs: Sequence[SwitchedPairs], searches: Sequence[SwitchedSearch]) -> Iterator[ScaledPairs]:
    """Scored pairs; and of each search, queries with relevant and with other documents."""
    for each in pairs:
        old, new = each.scores
        kinds = each.pairs.is_matching, each.pairs.is_unrelated
        yield ScaledPairs(
            f"the {len(old):,} pairs of {each.pairs.name}", old, new, *kinds, each.pairs.units, _ends(each.similarities)
        )
    for search in searches:
        rows, columns, is_matching = _of_texts(search) if search.asks_itself else _of_queries(search)
        old, new = (scores[rows, columns] for scores in search.scores)
        yield ScaledPairs(
            f"{'texts' if search.asks_itself else 'queries and documents'} of {search.collection.name}",
            old,
            new,
            is_matching,
            ~is_matching,
            search.query_units[rows],
            _ends(search.similarities),
        )


def _ends(similarities: tuple[str, str]) -> tuple[float, float] | None:
    return (-1.0, 1.0) if similarities[1] == "cosine" else None


def _of_texts(search: SwitchedSearch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts in disjoint random pairs, which are independent, and hardly ever alike."""
    order = np.random.default_rng(SEED).permutation(len(search.collection.queries))
    half = len(order) // 2
    places = np.array([next(iter(own)) for own in search.collection.own])
    return order[:half], places[order[half : 2 * half]], np.zeros(half, dtype=bool)


def _of_queries(search: SwitchedSearch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each query with its relevant documents, and with random others."""
    count, documents = search.scores[0].shape
    each = min(-(-UNRELATED_PAIRS // count), documents // 2)
    order = np.random.default_rng(SEED).permutation(documents)
    rows, columns = [], []
    for query, relevant in enumerate(search.collection.relevant):
        # Dealt in turn, so that every document is in about as many pairs.
        dealt = order[(query * each + np.arange(each)) % documents]
        kept = [place for place in dealt if place not in relevant and search.rankable[query, place]]
        rows += [query] * (len(relevant) + len(kept))
        columns += [*relevant, *kept]
    is_matching = np.array([place in search.collection.relevant[row] for row, place in zip(rows, columns, strict=True)])
    return np.array(rows), np.array(columns), is_matching


SwitchVerdict = Literal["same index", "new threshold only", "bridge holds", "rebuild", "could not be told"]
# Of NEW's nDCG@10 (or first ten): what the maps of arXiv 2509.23471 keep at least.
HOLDS = 0.95
# Of the first ten of a query: at most one changes.
STAYS = 0.9


@dataclass(frozen=True)
class Judged:
    """The verdict in a word and in a line."""

    verdict: SwitchVerdict
    line: str


def judge(
    same: SameText | None,
    searches: Sequence[SearchOutcome],
    cut_offs: Sequence[CutOffTransfer],
    dimensions: tuple[int, int],
    holds: float = HOLDS,
) -> Judged:
    """All searches must agree that something is enough; what is least certain among them is said."""
    if same is not None and (same.is_same or same.is_rounded):
        rounded = "" if same.is_same else ", no more than half precision rounds"
        said = f"the vectors are the same (1 − cosine at most {same.worst:.1e}{rounded})"
        return Judged("same index", f"Same index: {said}.")
    besides = _besides(same, cut_offs, dimensions)
    if same is not None and same.moved:
        asked = [one for one in searches if not one.asks_itself]
        stay = min((one.overlap.value for one in asked if one.overlap.value is not None), default=None)
        if "queries" not in same.moved:
            found = "what is compared as such needs another cut-off"
        elif stay is None:
            found = "queries may find other documents"
        else:
            found = f"{shown(stay)} of a query's first ten documents stay"
        return Judged(
            "new threshold only",
            f"New threshold only: documents have the same vectors, so that OLD's index stays; "
            f"{' and '.join(same.moved)} have others (1 − cosine up to {same.worst:.2g}): {found}{besides}.",
        )
    mixed = _least([(one, one.ways[MIXED].kept) for one in searches if MIXED in one.ways])
    if mixed is not None and _is_above(mixed[1], holds) and all(_is_above(one.overlap, STAYS) for one in searches):
        return Judged(
            "new threshold only",
            f"New threshold only: {_kept(mixed)} is found in OLD's index as it is{besides}.",
        )
    kept = [(one, one.ways[one.bridge].kept) for one in searches if one.bridge is not None]
    if not kept or len(kept) < len(searches):
        few = "too few texts to fit a bridge on some and try it on others"
        if searches and (queries := min(one.queries for one in searches)) < MIN_UNITS:
            few = f"too few queries for an interval ({queries})"
        return Judged("could not be told", f"Cannot tell: {few}{besides}.")
    failing = _least([one for one in kept if one[1].high is not None and one[1].high < holds])
    if failing is not None:
        return Judged("rebuild", f"Rebuild: a bridge would hold only {_kept(failing)}{besides}.")
    least = _least(kept)
    if least is None:
        return Judged("could not be told", f"Cannot tell: NEW finds no relevant document{besides}.")
    if all(_is_above(one, holds) for _, one in kept):
        alone = ""
        if mixed is not None and _is_above(mixed[1], holds):
            alone = f", and NEW's queries as they are {with_interval(mixed[1])}"
        if least[0].bridge == MIXED:
            alone = " without a map, NEW's queries as they are"
        return Judged("bridge holds", f"Bridge holds {_kept(least)}{alone}{besides}.")
    said = f"a bridge holds {_kept(least)}{_too_few(least, holds)}"
    return Judged("could not be told", f"Cannot tell: {said}{besides}.")


def _is_above(found: Estimate, limit: float) -> bool:
    return found.low is not None and found.low >= limit


def _least(found: Sequence[tuple[SearchOutcome, Estimate]]) -> tuple[SearchOutcome, Estimate] | None:
    """The search that keeps least, those without an interval first."""
    known = [one for one in found if one[1].value is not None]
    return min(known, key=lambda one: (one[1].low is not None, one[1].low or 0.0), default=None)


def _kept(found: tuple[SearchOutcome, Estimate]) -> str:
    return f"{with_interval(found[1])} of NEW's {found[0].measure}"


def _too_few(found: tuple[SearchOutcome, Estimate], holds: float) -> str:
    outcome, kept = found
    limit = shown(holds)
    if kept.low is None or kept.value is None:
        return f", from too few queries for an interval ({outcome.queries})"
    away = abs(kept.value - holds)
    said = f", so {limit} may be held or not"
    # Half an interval shrinks with the root of the queries.
    needed = outcome.queries * (max(kept.value - kept.low, 1e-9) / away) ** 2 if away > 1e-3 else math.inf
    return said + (f" (about {math.ceil(needed / 100) * 100:,} queries would tell)" if needed < 1e5 else "")


def _besides(same: SameText | None, cut_offs: Sequence[CutOffTransfer], dimensions: tuple[int, int]) -> str:
    """What a message has to say besides: the median cosine and what the first cut-off becomes."""
    said = f"; {dimensions[0]} dimensions become {dimensions[1]}"
    if same is not None:
        said = f"; median cosine {shown(same.median.value or 0.0)}"
    told = [one for one in cut_offs if one.is_told(one.new)]
    if not told:
        return f"{said}; cannot tell what a cut-off becomes"
    first = told[0]
    return f"{said}; a cut-off of {shown(first.old)} becomes {with_interval(first.new)}"
