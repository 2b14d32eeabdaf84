"""A search as a row of its table, and all else that is known of it, as JSON has it."""

from __future__ import annotations

from typing import Any

from embaudit.questions.why.case import Case, StoreAnswer
from embaudit.questions.why.stage_trace import StageTrace
from embaudit.questions.why.unexpected import LEFT_OUT, CameUp
from embaudit.questions.why.verdict import Diagnosis

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
