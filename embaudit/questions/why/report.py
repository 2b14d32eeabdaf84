"""Says of each search where it was lost, and of many where most are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from embaudit.corpora.golden import GoldenQuery
from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.answer import AnswerFigure
from embaudit.questions.report import HOW_IT_IS_ASKED, HOW_IT_IS_READ, Report
from embaudit.questions.vectors.embedded import WHAT_WAS_EMBEDDED, say_so
from embaudit.questions.vectors.roles import PLURAL
from embaudit.questions.vectors.text_copies import copy_findings, text_copies
from embaudit.questions.why.absent import OtherPlaces, in_fields
from embaudit.questions.why.another import with_another
from embaudit.questions.why.case import Case, StoreAnswer
from embaudit.questions.why.lost import where_lost
from embaudit.questions.why.page import why_page
from embaudit.questions.why.verdict import Diagnosis, ShownResults, heading, heading_of
from embaudit.questions.why.walk import Progress, SearchTraces, walk
from embaudit.statistics.intervals import exact_share
from embaudit.stores.search import Settings
from embaudit.stores.store import Store
from embaudit.stores.template import in_words
from embaudit.words.errors import CorpusError

K = 10
# Who searches such a folder takes the relevance of its own for scores.
LANGCHAIN = "LangChain's FAISS"
FIRST_TEN = ShownResults(K)

SEARCH = Rule(
    "search", reason="`not measured`: the store's own search failed; ranks are exact, and everything else is kept"
)
ANOTHER_INDEX = Rule(
    "another_index", look_if="none of several expected rows is in the store", reason="they may belong to another one"
)
FOREIGN_INDEX = Rule(
    "foreign_index",
    "share of rows drawn at random whose vectors are the function's",
    look=0.5,
    worse="lower",
    look_if="below {look}",
    reason="most of the index was built otherwise",
)


@dataclass(frozen=True)
class WhyReport(Report):
    """What came of walking some searches.

    Attributes:
        lost: of each case of ``walked``, where it was lost.
        not_searched: why the store's own search could not be asked; empty if it could, or there is none.
    """

    levels: ClassVar[dict[str, Level]] = {"found": "ok", "lost": "problem", "not told": "not measured"}

    store: Store
    function: str
    walked: SearchTraces
    lost: tuple[Diagnosis, ...]
    cut_off: ShownResults
    not_searched: str = ""
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def cases(self) -> list[tuple[Case, Diagnosis]]:
        return list(zip(self.walked.cases, self.lost, strict=True))

    @property
    def counts(self) -> Counter[str]:
        """By word, how many cases; the most frequent first."""
        return Counter(dict(Counter(one.lost for one in self.lost).most_common()))

    @property
    def verdict(self) -> str:
        words = set(self.counts)
        return "lost" if words - {"found", "not told"} else "not told" if "not told" in words else "found"

    @property
    def line(self) -> str:
        if len(self.lost) == 1:
            one = self.lost[0]
            return f"{heading(one)}. {one.sentence}"
        found, cases = self.counts["found"], len(self.lost)
        low, high = exact_share(found, cases)
        counts = self.counts
        lost = ", ".join(f"{counts[word]:,} {heading_of(word)}" for word in counts if word not in ("found", "not told"))
        rest = (f"; lost: {lost}" if lost else "") + (
            f"; not told: {counts['not told']:,}" if counts["not told"] else ""
        )
        return f"{found:,} of {cases:,} are found ({found / cases:.0%} [{low:.0%}, {high:.0%}]){rest}."

    @property
    def cause(self) -> Finding | None:
        # The verdict's line says it whole.
        return None

    def told(self) -> list[Finding]:
        mend = self.lost[0].mend if len(self.lost) == 1 else ""
        return [Finding(self.level, self.line, advice=mend, name="verdict"), *self.by_level()]

    def page(self) -> Page:
        return why_page(self)

    def answer_figures(self) -> Iterator[AnswerFigure]:
        low, high = exact_share(self.counts["found"], len(self.lost))
        yield AnswerFigure("found", self.counts["found"] / len(self.lost), low=low, high=high, of=len(self.lost))
        for word, count in self.counts.items():
            yield AnswerFigure("lost", count, word, of=len(self.lost))

    def case_rows(self) -> Iterator[dict[str, Any]]:
        for case, lost in self.cases:
            yield {
                "query": case.query,
                "expected": case.expected,
                **{name: getattr(lost, name) for name in ("lost", "cause", "sentence", "mend")},
                "exact_rank": case.rank,
                "store_rank": None if case.answer is None else case.answer.rank,
            }

    def as_json(self) -> dict[str, Any]:
        return {
            "store": self.store.shown,
            "kind": self.store.kind,
            "function": self.function,
            "metric": self.walked.metric,
            "k": self.cut_off.k,
            "least": self.cut_off.least,
            "least_is": self.cut_off.scale,
            "verdict": self.verdict,
            "line": self.line,
            "lost": dict(self.counts),
            "cases": [_as_json(case, lost) for case, lost in self.cases],
            "findings": [vars(finding) for finding in self.by_level()],
            "seconds": round(self.seconds, 1),
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
    places: OtherPlaces | None = None,
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
        places: where rows are looked for that the store has not.
    """
    start = time.monotonic()
    search, failed = None, ""
    if store.search is not None:
        try:
            search = store.search()
        except CorpusError as error:
            failed = error.happened
    present = {} if search is None else search.present_with(settings or {}, store.shown)
    walked = walk(
        store,
        function,
        golden,
        filtered=filtered,
        search=search,
        settings=present,
        cut_off=cut_off,
        severe=severe,
        seed=seed,
        progress=progress,
        numbers=None if places is None else places.numbers({name for one in golden for name in one.expected}),
    )
    walked = _looked_elsewhere(walked, store, places)
    if also is not None:
        cases = with_another(
            walked.cases,
            also,
            walked.gathered,
            cut_off.k,
            seed,
            lambda more, total: progress(f"texts encoded by {also.name}", more, total),
        )
        walked = replace(walked, cases=tuple(cases))
    if store.kind == LANGCHAIN and walked.metric == "l2":
        cut_off = replace(cut_off, scale="relevance")
    own = 1.0 if walked.built is None or walked.built.form is None else walked.built.own
    lost = tuple(where_lost(case, cut_off, walked.metric, walked.declared, own) for case in walked.cases)
    findings = _findings(store, walked, failed)
    if search is not None and any(one.lost == "search" for one in lost):
        findings += [HOW_IT_IS_ASKED.finding("ok", note) for note in search.notes]
    return WhyReport(store, function.name, walked, lost, cut_off, failed, tuple(findings), time.monotonic() - start)


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


def _findings(store: Store, walked: SearchTraces, failed: str) -> list[Finding]:
    """What is known of the store, whichever case it is."""
    found = []
    if failed:
        found.append(SEARCH.finding("not measured", f"The store's own search: {failed}.", "Ranks are exact."))
    is_unknown = all(case.row is None and not case.near_ids and case.in_another is None for case in walked.cases)
    if len(walked.cases) > 1 and is_unknown and not any(walked.gathered.rows.values()):
        found.append(
            ANOTHER_INDEX.finding(
                "look",
                f"None of the {len(walked.cases):,} expected rows is in the store: are they of another index?",
                advice="Name the column of their ids: --id COLUMN; or the store that they belong to.",
            )
        )
    answers = [case.answer for case in walked.cases if case.answer is not None and case.answer.failed]
    if answers:
        found.append(
            SEARCH.finding(
                "not measured",
                f"The store's own search failed for {len(answers):,} of {len(walked.cases):,} queries: "
                f"{answers[0].failed}.",
                "Everything else is kept.",
            )
        )
    built = walked.built
    if built is not None and built.template is not None:
        found.append(
            WHAT_WAS_EMBEDDED.finding(
                "look",
                f"The store embeds {in_words(built.template)}, and not the text column alone.",
                advice=say_so(built.template),
            )
        )
    if built is not None and built.form is not None and built.own < FOREIGN_INDEX.look:
        found.append(
            FOREIGN_INDEX.finding(
                "look",
                f"Of rows drawn at random, {built.own:.0%} are the function's: most of this index was built otherwise"
                + (f", by asking it for {PLURAL[built.as_role]}." if built.as_role else "."),
                advice="Encode the rows again, as documents."
                if built.as_role
                else "embaudit vectors STORE FUNCTION says how.",
                value=built.own,
            )
        )
    found += copy_findings(text_copies(walked.gathered.profile))
    found += [HOW_IT_IS_READ.finding("look", note) for note in store.notes]
    return found


def _as_json(case: Case, lost: Diagnosis) -> dict[str, Any]:
    row, read, piece = case.row, case.read, case.piece
    return {
        "query": case.query,
        "expected": case.expected,
        "lost": lost.lost,
        "in_another": None if case.in_another is None else vars(case.in_another),
        "cause": lost.cause,
        "sentence": lost.sentence,
        "mend": lost.mend,
        "id": None if row is None else row.id,
        "row": None if row is None else row.number + 1,
        "vector": case.vector,
        "is_the_functions": case.is_own,
        "apart": case.apart,
        "is_of": case.of_other,
        "tokens": None if read is None else read.tokens,
        "limit": None if read is None else read.limit,
        "exact_rank": case.rank,
        "score": case.score,
        "cosine": case.cosine,
        "rank_by_declared_metric": case.declared_rank,
        "above": [{name: value for name, value in vars(one).items() if name != "number"} for one in case.above[:K]],
        "piece": None if piece is None else {"rank": case.piece_rank, **vars(piece)},
        "field": None if case.field is None else vars(case.field),
        "query_tokens": None if case.query_read is None else case.query_read.tokens,
        "other_queries": [{"asked": said, "rank": rank} for said, rank in case.readings],
        "sticky_tokens": list(case.sticky),
        "rank_without_sticky_tokens": case.sticky_rank,
        "bm25_rank": case.words,
        "another_function": None if case.also is None else vars(case.also),
        "store": None if case.answer is None else _answer(case.answer),
    }


def _answer(answer: StoreAnswer) -> dict[str, Any]:
    finds = None if answer.finds is None else {"settings": answer.finds[0], "rank": answer.finds[1]}
    typed = None if answer.typed is None else vars(answer.typed)
    return {**vars(answer), "finds": finds, "typed": typed}
