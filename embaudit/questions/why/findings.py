"""What is said of a store besides its cases; and a search as a row of its table and as JSON has it."""

from __future__ import annotations

from typing import Any

from embaudit.declared.rule import Finding, Rule
from embaudit.questions.report import HOW_IT_IS_READ
from embaudit.questions.vectors.embedded import WHAT_WAS_EMBEDDED, say_so
from embaudit.questions.vectors.forms import PLURAL
from embaudit.questions.vectors.text_copies import copy_findings, text_copies
from embaudit.questions.why.case import Case, Diagnosis, StoreAnswer
from embaudit.questions.why.stage_trace import StageTrace
from embaudit.questions.why.unexpected import LEFT_OUT, CameUp
from embaudit.questions.why.walk import SearchTraces
from embaudit.stores.store import Store
from embaudit.stores.template import in_words

# Rows above one.
ABOVE = 10


def row_of_case(case: Case, lost: Diagnosis, trace: StageTrace | None) -> dict[str, Any]:
    """A row of ``WhyCaseRow``.

    Args:
        trace: of the application whose stages lose it.
    """
    return {
        "query": case.query,
        "expected": case.expected,
        "lost": lost.lost,
        "cause": lost.cause,
        "sentence": lost.sentence if trace is None else f"{lost.sentence} {trace.sentence}",
        "mend": lost.mend or ("" if trace is None else trace.mend),
        "exact_rank": case.rank,
        "store_rank": None if case.answer is None else case.answer.rank,
        "tried": None if lost.trial is None else lost.trial.mend.name,
        "is_confirmed": lost.is_confirmed,
        "mended_rank": None if lost.trial is None else lost.trial.after,
        "stage": None if trace is None else trace.lost_at,
    }


def known_of_case(case: Case, lost: Diagnosis, up: CameUp | None, trace: StageTrace | None = None) -> dict[str, Any]:
    """What is known of a search beside its row."""
    row, read, piece = case.row, case.read, case.piece
    return {
        "in_another": None if case.in_another is None else vars(case.in_another),
        "trial": None if lost.trial is None else lost.trial.as_json(),
        "trials": [one.as_json() for one in lost.trials],
        "id": None if row is None else row.id,
        "row": None if row is None else row.number + 1,
        "vector": case.vector,
        "is_the_functions": case.is_own,
        "apart": case.apart,
        "is_of": case.of_other,
        "tokens": None if read is None else read.tokens,
        "limit": None if read is None else read.limit,
        "score": case.score,
        "cosine": case.cosine,
        "rank_by_declared_metric": case.declared_rank,
        "above": [{name: value for name, value in vars(one).items() if name != "number"} for one in case.above[:ABOVE]],
        "piece": None if piece is None else {"rank": case.piece_rank, **vars(piece)},
        "field": None if case.field is None else vars(case.field),
        "query_tokens": None if case.query_read is None else case.query_read.tokens,
        "other_queries": [{"asked": said, "rank": rank} for said, rank in case.readings],
        "sticky_tokens": list(case.sticky),
        "rank_without_sticky_tokens": case.sticky_rank,
        "bm25_rank": case.words,
        "hybrid_rank": case.hybrid,
        "rank_encoded_again": case.again,
        "another_function": None if case.also is None else vars(case.also),
        "store": None if case.answer is None else _answer(case.answer),
        "stages": None if trace is None else trace.as_json(),
        **({} if up is None else _came_up(up)),
    }


def _came_up(up: CameUp) -> dict[str, Any]:
    left_out = [{"of": one.side, "words": one.words, "rank": one.attempt.rank} for one in up.left_out[:LEFT_OUT]]
    return {
        "in_results": up.case.in_results,
        "kind": up.kind,
        "words": up.words,
        "usual_words": up.usual,
        "share_of_query": up.share,
        "left_out": left_out,
        "rank_without_query_in_text": up.without_all,
        "rank_with_next_text": up.joined,
        "rank_nearer_than_usual": up.usually,
        "rank_encoded_again": up.again,
        "sticky_tokens": list(up.sticky),
        "rank_without_sticky_tokens": up.sticky_rank,
    }


def _answer(answer: StoreAnswer) -> dict[str, Any]:
    finds = [{"settings": said, "rank": rank} for said, rank in answer.finds]
    typed = None if answer.typed is None else vars(answer.typed)
    return {**vars(answer), "finds": finds, "typed": typed}


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


def findings_of(store: Store, walked: SearchTraces, failed: str) -> list[Finding]:
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
