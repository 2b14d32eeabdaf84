"""Runs a comparison of the index that OLD built with what NEW would need, and says what follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.embedders.function import EmbeddingFunction, taken_alike
from embaudit.embedders.object.interfaces import is_named_object
from embaudit.measures.quality.golden import GoldenChanges
from embaudit.measures.quality.material import MEND, ScoredPairs
from embaudit.questions.report import AnswerFigure, Report, figure_of
from embaudit.questions.switch import findings as say
from embaudit.questions.switch.encode import Cost, SearchTexts, encode_all
from embaudit.questions.switch.material import SwitchedPairs, SwitchedSearch
from embaudit.questions.switch.page import switch_page
from embaudit.questions.switch.quality import SameText, ScoreChange, compare_same_texts, score_changes
from embaudit.questions.switch.search import SearchOutcome, measure_search
from embaudit.questions.switch.verdict import (
    HOLDS,
    CutOffTransfer,
    Judged,
    ScaledPairs,
    SwitchVerdict,
    judge,
    scales_of,
    transfer_cut_offs,
)
from embaudit.words.errors import EXIT_TRIPPED, MeasureError

Progress = Callable[[str], None]
ROWS = 1_000_000
MATERIAL = Rule("material", reason="`not measured`: a file that was given and cannot be used")
SAME = Rule("same", look_if="OLD and NEW are one function, asked in the same way", reason="nothing can differ")


@dataclass(frozen=True)
class SwitchReport(Report):
    """What becomes of an index.

    Attributes:
        old, new: as the user named them.
        same_text: None if the two have other dimensions.
        scales: the similarities behind the cut-offs, for charts.
        cost: None if nothing was encoded.
        missing: what was given and could not be used.
    """

    levels: ClassVar[Mapping[str, Level]] = {
        "same index": "ok",
        "new threshold only": "look",
        "bridge holds": "look",
        "rebuild": "problem",
        "could not be told": "not measured",
    }
    # Anything but the same index is something to do.
    exits: ClassVar[Mapping[Level, int]] = {**Report.exits, "look": EXIT_TRIPPED}
    # Its line tells what to do, and no finding.
    cause = None

    old: str
    new: str
    dimensions: tuple[int, int]
    judged: Judged
    same_text: SameText | None
    searches: tuple[SearchOutcome, ...]
    cut_offs: tuple[CutOffTransfer, ...]
    quality: tuple[ScoreChange, ...]
    findings: tuple[Finding, ...]
    golden: tuple[GoldenChanges, ...] = ()
    holds: float = HOLDS
    scales: tuple[ScaledPairs, ...] = field(default=(), repr=False)
    cost: Cost | None = None
    old_id: str = ""
    new_id: str = ""
    seconds: float = 0.0

    @property
    def verdict(self) -> SwitchVerdict:
        return self.judged.verdict

    @property
    def line(self) -> str:
        return self.judged.line

    def page(self) -> Page:
        return switch_page(self)

    def answer_figures(self) -> Iterator[AnswerFigure]:
        if self.same_text is not None:
            yield figure_of("median_cosine", self.same_text.median, of=self.same_text.texts)
        for change in self.quality:
            for name, score in (("old", change.old), ("new", change.new), ("change", change.change)):
                yield figure_of(f"{change.metric}, {name}", score, change.name)

    def content(self) -> dict[str, Any]:
        return {
            "old": self.old,
            "old_id": self.old_id,
            "new": self.new,
            "new_id": self.new_id,
            "holds": self.holds,
            "dimensions": list(self.dimensions),
            "same_text": None if self.same_text is None else self.same_text.as_json(),
            "searches": [one.as_json() for one in self.searches],
            "cut_offs": [one.as_json() for one in self.cut_offs],
            "quality": [one.as_json() for one in self.quality],
            "golden": [one.as_json() for one in self.golden],
            "cost": None if self.cost is None else self.cost.as_json(),
        }


def switch_vectors(
    pairs: Sequence[SwitchedPairs] = (),
    searches: Sequence[SwitchedSearch] = (),
    *,
    thresholds: Sequence[float] = (),
    holds: float = HOLDS,
    names: tuple[str, str] = ("OLD", "NEW"),
    progress: Progress = lambda what: None,
) -> SwitchReport:
    """The report from vectors alone, whoever made them (``search_of_vectors``): all but the cost.

    Args:
        thresholds: in use with OLD; by default one is chosen on each set of pairs.
        holds: what a bridge, or a search without one, must keep.

    Raises:
        MeasureError: if there is nothing to compare.
    """
    if not pairs and not searches:
        raise MeasureError("There is nothing to compare: no pairs and no documents.")
    start = time.monotonic()
    first = pairs[0].firsts if pairs else searches[0].known
    other_similarity = say.similarity_finding((pairs[0] if pairs else searches[0]).similarities)
    dimensions = first.old.shape[1], first.new.shape[1]
    same = compare_same_texts(pairs, searches)
    outcomes = []
    for search in searches:
        progress(f"the search of {search.collection.name}")
        outcomes.append(measure_search(search, pairs))
    progress("cut-offs")
    scales = tuple(scales_of(pairs, searches))
    transfers = transfer_cut_offs(scales, thresholds)
    changes = list(score_changes(pairs, searches))
    golden = [GoldenChanges.of(one.collection, *one.scores) for one in searches if one.collection.is_golden]
    judged = judge(same, outcomes, transfers, dimensions, holds)
    found = [
        say.mixing_finding(same, outcomes, dimensions, holds),
        *([other_similarity] if other_similarity is not None else []),
        *say.query_findings(outcomes),
        say.cut_off_finding(transfers),
        *(one.finding() for one in golden),
    ]
    if judged.verdict != "same index":
        found.append(say.quality_finding(changes))
        # Where documents have the same vectors, there is nothing to bridge.
        found += say.bridge_findings(outcomes, holds) if same is None or not same.moved else ()
    return SwitchReport(
        *names,
        dimensions,
        judged,
        same,
        tuple(outcomes),
        tuple(transfers),
        tuple(changes),
        tuple(found),
        tuple(golden),
        holds,
        scales,
        seconds=time.monotonic() - start,
    )


def switch_functions(
    old: EmbeddingFunction,
    new: EmbeddingFunction,
    pairs: Sequence[ScoredPairs],
    searches: Sequence[SearchTexts],
    *,
    thresholds: Sequence[float] = (),
    rows: int = ROWS,
    holds: float = HOLDS,
    missing: Sequence[str] = (),
    progress: Progress = lambda what: None,
) -> SwitchReport:
    """Encode the texts with both, and report.

    Args:
        old, new: checkpoints in the precision in which they serve, or other functions.
        rows: of the index, for the cost.
        missing: what was given and cannot be used, and why.

    Raises:
        MeasureError: if a text has no vector, or there are too few documents.
    """
    start = time.monotonic()
    switched_pairs, switched, cost = encode_all(*taken_alike(old, new), pairs, searches, rows, progress)
    report = switch_vectors(
        switched_pairs,
        switched,
        thresholds=thresholds,
        holds=holds,
        names=(old.name, new.name),
        progress=progress,
    )
    more = [
        say.cost_finding(cost),
        *say.role_findings((old, new), [one for one in searches if not one.asks_itself]),
        *(MATERIAL.finding("not measured", f"Not used: {what}.", advice=MEND) for what in missing),
    ]
    if _is_one(old, new):
        more.append(SAME.finding("look", f"OLD and NEW are the same {old.kind}.", advice="Is that what was meant?"))
    return replace(
        report,
        findings=(*report.findings, *more),
        cost=cost,
        old_id=old.identity,
        new_id=new.identity,
        seconds=time.monotonic() - start,
    )


def _is_one(old: EmbeddingFunction, new: EmbeddingFunction) -> bool:
    """Whether somebody gave the same function twice, asked in the same way.

    Objects in memory have no name of their own: two of one type need not be the same.
    """
    if old.asked_as != new.asked_as:
        return False
    return bool(old.identity) or old is new or old.kind == "endpoint" or is_named_object(old.name)
