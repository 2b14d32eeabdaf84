"""One verdict: what has to be done so that NEW's queries find what they should.

same index            vectors are the same within parity's limits, or those of half precision
new threshold only    NEW's queries find as much in OLD's index, and nine of ten first documents stay; or documents
                      have the same vectors, and queries, or texts of pairs, other ones
bridge holds          a linear map, or none, keeps so much of what NEW finds in OLD's index (``HOLDS``, unless set)
rebuild               none does
could not be told     an interval holds both answers, or there is none
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from embaudit.questions.switch.cut_offs import CutOffTransfer
from embaudit.questions.switch.quality import SameText
from embaudit.questions.switch.search import MIXED, SearchOutcome
from embaudit.statistics.intervals import MIN_UNITS
from embaudit.words.estimate import Estimate, shown, with_interval

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
