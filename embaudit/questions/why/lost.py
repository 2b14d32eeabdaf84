"""Where a search was lost, in one word, one sentence and one line that mends it.

The rules, in the order of the chain; the first that holds is said:

``absent``    no row has this id or text, of this store or of the file of its texts; other fields and parts that have it
``filter``    the row lacks the filter's value
``vector``    it has no vector, or zeros, NaN, another dimension
``found``     the store's own search gives it among the first k (exact search, if it has none), above the cut-off
``cut-off``   its score is below the cut-off
``vector``    its vector is not the function's of its text, or most of the index is not
``filter``    the store gives it if its value is asked for in the type that it has
``search``    exactly it is among the first k and the store does not give it; or it is so by the metric that is declared

and if exact search has it behind the first k, too, those of ``behind``.
"""

from __future__ import annotations

from math import sqrt

from embaudit.questions.search.metric import NAMES
from embaudit.questions.why.behind import behind
from embaudit.questions.why.case import OTHER_QUERIES, Case
from embaudit.questions.why.verdict import Diagnosis, ShownResults, nth
from embaudit.stores.store import Metric
from embaudit.words.sentences import first_of, quoted

# Of an index, the share of rows that must be the function's, so that a row that is not is an odd one.
MOSTLY = 0.5


def where_lost(case: Case, cut_off: ShownResults, metric: Metric, declared: Metric, own: float = 1.0) -> Diagnosis:
    """The first rule that holds.

    Args:
        own: of rows drawn at random, the share that is the function's.
    """
    k = cut_off.k
    if case.row is None:
        return _absent(case)
    if case.passes is False:
        return Diagnosis(
            "filter", "The row is there, and the filter leaves it out.", "Give the row that value, or ask without."
        )
    if case.vector:
        mend = (
            "Ask with the function that built the index, or encode all of its rows again."
            if OTHER_QUERIES in case.vector
            else "Encode this row again."
        )
        return Diagnosis("vector", f"Its vector is {case.vector}: no search can find it.", mend, case.vector)
    if not case.query_has_vector:
        return Diagnosis("not told", "The function gives no vector for this query.", "Ask it in other words.")
    given = case.rank if case.answer is None or case.answer.failed else case.answer.rank
    if given is not None and given <= k:
        if (below := _below(case, given, cut_off, metric)) is not None:
            return below
        return Diagnosis("found", f"It is {nth(given)} of {k}.")
    if case.answer is not None and case.answer.copy is not None:
        name, place = case.answer.copy
        return Diagnosis("found", f"A copy of its text, {name}, is {nth(place)} of {k}.", cause="copy")
    if case.is_own is False:
        return _foreign(case, own)
    if case.rank is None:
        return Diagnosis("not told", "It could not be ranked.")
    if case.rank <= k:
        return _search(case)
    if metric != declared and case.declared_rank is not None and case.declared_rank <= k:
        return Diagnosis(
            "search",
            f"The store ranks by {NAMES[metric]}, the function is made for {NAMES[declared]}, by which it would be "
            f"{nth(case.declared_rank)}, and not {nth(case.rank)}.",
            f"Give the index {NAMES[declared]}, or put in vectors of unit length.",
            "metric",
        )
    return behind(case, k)


def _below(case: Case, given: int, cut_off: ShownResults, metric: Metric) -> Diagnosis | None:
    """A result whose score is below the cut-off, on the scale that this has."""
    if cut_off.least is None or case.cosine is None:
        return None
    own, what = case.cosine, f"its cosine of {case.cosine:.2f}"
    distance = -case.score if metric == "l2" and case.score is not None else None
    if cut_off.scale == "relevance" and distance is not None:
        own = 1 - distance / sqrt(2)
        what = (
            f"LangChain's relevance of it, {own:.2f} (1 − d²/√2 of its squared distance {distance:.2f}; cosine "
            f"{case.cosine:.2f}),"
        )
    elif distance is not None:
        what += f" (squared distance {distance:.2f})"
    elif metric == "dot" and case.score is not None and abs(case.score - case.cosine) > 0.005:
        what += f" (inner product {case.score:.2f})"
    if own >= cut_off.least:
        return None
    return Diagnosis(
        "cut-off",
        f"It is {nth(given)}, and {what} is below the cut-off of {cut_off.least:g}.",
        f"Lower the cut-off to {own - 0.005:.2f}; embaudit switch says what else that lets in.",
        "score",
    )


def _absent(case: Case) -> Diagnosis:
    if case.elsewhere:
        return Diagnosis(
            "absent",
            f"No row has the id or text {quoted(case.expected)}; its text, or a part of it, stands in "
            f"{', '.join(case.elsewhere[:3])}.",
            f"Expect one of these: --expect {case.elsewhere[0]}",
            "pieces",
        )
    if case.in_another is not None:
        where = case.in_another
        has = first_of(where.ids, 3)
        if where.field:
            return Diagnosis(
                "absent",
                f"No row has the id or text {quoted(case.expected)}; {where.field} has it, in {has}.",
                f"Name that column, --id {where.field}, or expect one of these: --expect {where.ids[0]}",
                "another field",
            )
        return Diagnosis(
            "absent",
            f"No row has the id or text {quoted(case.expected)} here; {where.part}, in the same place, has it ({has}).",
            f"Search there, --from {where.part}, or put it into this one.",
            "another part",
        )
    absent = f"No row has the id or text {quoted(case.expected)}."
    if not case.near_ids:
        return Diagnosis("absent", absent, "Put it into the index.")
    first = case.near_ids[0]
    return Diagnosis(
        "absent",
        f"{absent} Ids that look like it: {', '.join(case.near_ids)}.",
        f"If {first} is meant, expect that: --expect {first}. If not, put it into the index.",
    )


def _foreign(case: Case, own: float) -> Diagnosis:
    whose = f": it is that of the text of {case.of_other}" if case.of_other else ""
    apart = "" if case.apart is None else f" (1 − cosine {case.apart:.2g})"
    if own < MOSTLY and not case.of_other:
        return Diagnosis(
            "vector",
            f"Its vector was not built by this function from its text{apart}, and of rows drawn at random {own:.0%} "
            "were: the index is another function's.",
            "Ask with the function that built it, or encode all of its rows again; embaudit vectors says which rows.",
            "foreign index",
        )
    return Diagnosis(
        "vector",
        f"Its vector was not built by this function from its text{apart}{whose}.",
        "Encode this row again; embaudit vectors says how many others are so.",
        "another text" if case.of_other else "foreign",
    )


def _search(case: Case) -> Diagnosis:
    answer = case.answer
    if answer is not None and answer.typed is not None:
        typed = answer.typed
        return Diagnosis(
            "filter",
            f"The filter asks for {typed.called(typed.wanted)} in {typed.name}, and the row has "
            f"{typed.called(typed.has)}, which the store tells apart: asked for that, it is {nth(typed.rank)}.",
            f"Ask for {typed.called(typed.has)}, or give {typed.name} one type in all rows.",
            "type",
        )
    settings = f" ({answer.index}, {answer.settings})" if answer is not None and answer.settings else ""
    mend = "Build the index anew; embaudit search says how many rows are so."
    if answer is not None and answer.finds is not None:
        mend = f"{answer.finds[0]} finds it ({nth(answer.finds[1])}); embaudit search says what that costs."
    return Diagnosis(
        "search",
        f"Exactly it is {nth(case.rank or 0)}, and the store's search does not give it{settings}.",
        mend,
        "approximate",
    )
