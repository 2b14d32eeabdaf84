"""Says of each search where it was lost, and of many where most are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, get_args

from embaudit.corpora.golden import GoldenQuery
from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level
from embaudit.declared.table import Row
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.report import HOW_IT_IS_ASKED, AnswerFigure, Report, Up, WhyCaseRow
from embaudit.questions.why.application import Application
from embaudit.questions.why.case import OTHER_QUERIES, ByAnother, Case, Diagnosis, ShownResults, heading, heading_of
from embaudit.questions.why.findings import findings_of, known_of_case, row_of_case
from embaudit.questions.why.lost import MOSTLY, where_lost
from embaudit.questions.why.mends import MendOfMany, cheapest_first, told_of_many
from embaudit.questions.why.page import why_page
from embaudit.questions.why.ranked import ranks_by
from embaudit.questions.why.rows import OtherPlaces, in_fields
from embaudit.questions.why.stages import StageTraces, asked, ids_that_serve, traced
from embaudit.questions.why.unexpected import CameUp, came_up, not_shown, why_it_came_up
from embaudit.questions.why.walk import Progress, SearchTraces, walk
from embaudit.statistics import exact_share
from embaudit.stores.search import Settings
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError
from embaudit.words.sentences import within

K = 10
# What becomes of a row that should not come up.
UP = get_args(Up)
# Who searches such a folder takes the relevance of its own for scores.
LANGCHAIN = "LangChain's FAISS"
FIRST_TEN = ShownResults(K)


@dataclass(frozen=True)
class WhyReport(Report):
    """What came of walking some searches.

    Attributes:
        lost: of each case of ``walked``, where it was lost.
        not_searched: why the store's own search could not be asked; empty if it could, or there is none.
        came_up: by case, what is known of a row that should not have come up.
        stages: of the application; None if none was named.
    """

    levels: ClassVar[dict[str, Level]] = {
        **{"found": "ok", "lost": "problem", "not told": "not measured"},
        **{"came up": "problem", "not shown": "ok"},
    }

    store: Store
    function: str
    walked: SearchTraces
    lost: tuple[Diagnosis, ...]
    cut_off: ShownResults
    not_searched: str = ""
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    came_up: Mapping[int, CameUp] = field(default_factory=dict)
    stages: StageTraces | None = None

    @property
    def cases(self) -> list[tuple[Case, Diagnosis]]:
        return list(zip(self.walked.cases, self.lost, strict=True))

    @property
    def counts(self) -> Counter[str]:
        """By word, how many cases; the most frequent first."""
        return Counter(dict(Counter(one.lost for one in self.lost).most_common()))

    @property
    def are_lost(self) -> int:
        return sum(count for word, count in self.counts.items() if word not in (*UP, "found", "not told"))

    @property
    def lost_by_application(self) -> int:
        """Rows that the search finds, and that the application loses after it."""
        lost = {} if self.stages is None else self.stages.lost
        return sum(self.lost[place].lost == "found" for place in lost)

    @property
    def mends(self) -> list[MendOfMany]:
        """What would find the lost ones, the cheapest first."""
        return list(cheapest_first([one.trials for one in self.lost if one.lost not in (*UP, "found", "not told")]))

    @property
    def verdict(self) -> str:
        words = set(self.counts)
        for word in UP:
            if word in words:
                return word
        if self.lost_by_application:
            return "lost"
        return "lost" if words - {"found", "not told"} else "not told" if "not told" in words else "found"

    @property
    def line(self) -> str:
        if len(self.lost) == 1:
            one = self.lost[0]
            if self.lost_by_application:
                return f"Lost after the search, by the application. In the search: {within(one.sentence)}"
            return f"{heading(one)}. {one.sentence}"
        found, cases = self.counts["found"], len(self.lost)
        if self.verdict in UP:
            return f"{self.counts['came up']:,} of {cases:,} rows came up."
        low, high = exact_share(found, cases)
        counts = self.counts
        lost = ", ".join(f"{counts[word]:,} {heading_of(word)}" for word in counts if word not in ("found", "not told"))
        rest = (f"; lost: {lost}" if lost else "") + (
            f"; not told: {counts['not told']:,}" if counts["not told"] else ""
        )
        after = f"; the application loses {self.lost_by_application:,} of these" if self.lost_by_application else ""
        return f"{found:,} of {cases:,} are found ({found / cases:.0%} [{low:.0%}, {high:.0%}]){after}{rest}."

    @property
    def cause(self) -> Finding | None:
        # The verdict's line says it whole.
        return None

    def told(self) -> list[Finding]:
        advice = self.lost[0].mend
        if len(self.lost) > 1:
            advice = told_of_many(self.mends, self.are_lost)
        return [Finding(self.level, self.line, advice=advice, name="verdict"), *self.by_level()]

    def page(self) -> Page:
        return why_page(self)

    def answer_figures(self) -> Iterator[AnswerFigure]:
        if self.verdict in UP:
            yield AnswerFigure("came_up", self.counts["came up"], of=len(self.lost))
            return
        low, high = exact_share(self.counts["found"], len(self.lost))
        yield AnswerFigure("found", self.counts["found"] / len(self.lost), low=low, high=high, of=len(self.lost))
        for word, count in self.counts.items():
            yield AnswerFigure("lost", count, word, of=len(self.lost))
        for one in self.mends:
            yield AnswerFigure("mended", one.more, one.mend.name, of=self.are_lost)
        if self.stages is not None:
            yield from self.stages.figures()

    def rows(self) -> dict[type[Row], list[dict[str, Any]]]:
        stages = {} if self.stages is None else self.stages.lost
        return {
            WhyCaseRow: [row_of_case(case, lost, stages.get(place)) for place, (case, lost) in enumerate(self.cases)]
        }

    def content(self) -> dict[str, Any]:
        traces = {} if self.stages is None else self.stages.traces
        return {
            "store": self.store.shown,
            "kind": self.store.kind,
            "function": self.function,
            "metric": self.walked.metric,
            "k": self.cut_off.k,
            "least": self.cut_off.least,
            "least_is": self.cut_off.scale,
            "lost": dict(self.counts),
            "encodes_of_mends": self.walked.encodes,
            "mends": [
                {"mend": one.mend.name, "cost": one.mend.cost.shown, "finds": one.found, "more": one.more}
                for one in self.mends
            ],
            "stages": None if self.stages is None else self.stages.as_json(),
            "cases": [
                row | known_of_case(case, lost, self.came_up.get(place), traces.get(place))
                for place, (row, (case, lost)) in enumerate(zip(self.rows()[WhyCaseRow], self.cases, strict=True))
            ],
        }


def look_into(
    store: Store,
    function: EmbeddingFunction,
    golden: Sequence[GoldenQuery],
    *,
    filtered: Store | None = None,
    settings: Settings | None = None,
    cut_off: ShownResults = FIRST_TEN,
    severe: Collection[int] = (),
    also: EmbeddingFunction | None = None,
    application: Application | None = None,
    places: OtherPlaces | None = None,
    is_unexpected: bool = False,
    seed: int = 0,
    progress: Progress = lambda what, done, total: None,
) -> WhyReport:
    """Walk some searches.

    Args:
        filtered: the same store, of which the application's filter keeps some rows.
        settings: of a query, where the application has others than the store's own.
        cut_off: what of the results it shows.
        severe: ids of tokens that an audit found to be sticky.
        also: another function, that is asked where it puts the rows that this one loses.
        application: is asked for its stages, once for each query.
        places: where rows are looked for that the store has not.
        is_unexpected: whether the rows came up and should not have.
    """
    start = time.monotonic()
    # First: code that fails is known at once.
    queries = [one.query for one in golden]
    answers = None if application is None else asked(application, queries, progress)
    search, failed = None, ""
    if store.search is not None:
        try:
            search = store.search()
        except CorpusError as error:
            failed = error.happened
    present = {} if search is None else search.present_with(settings or {}, store.shown)
    shown = replace(cut_off, scale="relevance") if store.kind == LANGCHAIN else cut_off
    walked = walk(
        store,
        function,
        golden,
        filtered=filtered,
        search=search,
        settings=present,
        cut_off=shown,
        severe=severe,
        seed=seed,
        progress=progress,
        numbers=None if places is None else places.numbers({name for one in golden for name in one.expected}),
    )
    stages = None
    if application is not None and answers is not None:
        rows = [[row for name in one.expected for row in walked.gathered.rows[name]] for one in golden]
        stages = traced(application, answers, queries, ids_that_serve(rows, walked.gathered), walked.gathered)
    walked = _looked_elsewhere(walked, store, places)
    shown = shown if walked.metric == "l2" else cut_off
    own = 1.0 if walked.built is None or walked.built.form is None else walked.built.own
    cases = walked.cases

    def ranked_by(by: EmbeddingFunction, wanted: Callable[[Case], bool]) -> dict[int, ByAnother]:
        some = {place: case for place, case in enumerate(cases) if wanted(case)}
        said = f"texts encoded by {by.name}"
        return ranks_by(some, by, walked.gathered, seed, lambda more, total: progress(said, more, total))

    by_also = {} if also is None else ranked_by(also, lambda case: case.is_lost(shown.k) and case.passes is not False)
    anew = ranked_by(
        function,
        lambda case: OTHER_QUERIES in case.vector or (own < MOSTLY and case.is_own is False and not case.of_other),
    )
    cases = tuple(replace(case, also=by_also.get(one), anew=anew.get(one)) for one, case in enumerate(cases))
    encodes = walked.encodes + sum(max((one.compared for one in by.values()), default=0) for by in (by_also, anew))
    walked = replace(walked, cases=cases, encodes=encodes)
    lost = [where_lost(case, shown, walked.metric, walked.declared, own) for case in cases]
    ups: dict[int, CameUp] = {}
    for place, case in enumerate(cases) if is_unexpected else ():
        if lost[place].lost == "found" and case.row is not None and case.rank is not None:
            ups[place] = came_up(walked, filtered or store, function, place)
            lost[place] = why_it_came_up(ups[place], shown.k)
        elif lost[place].lost not in ("absent", "not told"):
            lost[place] = not_shown(case, shown.k, is_below=lost[place].cause == "score")
    findings = [*([] if stages is None else stages.all_findings()), *findings_of(store, walked, failed)]
    if search is not None and any(one.lost == "search" for one in lost):
        findings += [HOW_IT_IS_ASKED.finding("ok", note) for note in search.notes]
    return WhyReport(
        store,
        function.name,
        walked,
        tuple(lost),
        shown,
        failed,
        tuple(findings),
        time.monotonic() - start,
        ups,
        stages,
    )


def _looked_elsewhere(walked: SearchTraces, store: Store, places: OtherPlaces | None) -> SearchTraces:
    """Rows that are not there, with the field or the part of the place that has them."""
    absent = {case.expected for case in walked.cases if case.row is None and not case.elsewhere}
    found = in_fields(store, absent)
    if places is not None and absent - set(found):
        found = {**places.parts_with(absent - set(found)), **found}
    cases = [
        replace(case, in_another=found.get(case.expected)) if case.row is None and case.expected in absent else case
        for case in walked.cases
    ]
    return replace(walked, cases=tuple(cases))
