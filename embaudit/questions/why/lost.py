"""Where a search was lost, in one word, one sentence and one line that mends it.

The rules, in the order of the chain. The first that holds and whose mend, tried alone, brings the row among the first k
is said; if no mend does, the first that holds:

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

from collections.abc import Iterator
from dataclasses import replace

from embaudit.questions.search.curve import NAMES
from embaudit.questions.why import mends
from embaudit.questions.why.behind import behind
from embaudit.questions.why.case import OTHER_QUERIES, Case, Diagnosis, ShownResults
from embaudit.questions.why.mends import TriedMend, nth
from embaudit.stores.store import Metric
from embaudit.words.sentences import first_of, quoted

# Of an index, the share of rows that must be the function's, so that a row that is not is an odd one.
MOSTLY = 0.5


def where_lost(case: Case, cut_off: ShownResults, metric: Metric, declared: Metric, own: float = 1.0) -> Diagnosis:
    """The first rule that its mend confirms, or else the first that holds.

    Args:
        own: of rows drawn at random, the share that is the function's.
    """
    return Diagnosis.first_confirmed(_causes(case, cut_off, metric, declared, own))


def _causes(case: Case, cut_off: ShownResults, metric: Metric, declared: Metric, own: float) -> Iterator[Diagnosis]:
    k = cut_off.k
    # What leaves query and vector as they are leaves the score below the cut-off.
    is_below = not cut_off.shows(case.cosine, case.score, metric)
    if case.row is None:
        yield _absent(case)
        return
    if not case.query_has_vector:
        yield Diagnosis("not told", "The function gives no vector for this query.", "Ask it in other words.")
        return
    if case.vector:
        yield _unsearchable(case, k)
    if case.passes is False:
        why_not = "its vector cannot be searched" if case.rank is None else ""
        yield Diagnosis(
            "filter",
            "The row is there, and the filter leaves it out.",
            "Give the row that value, or ask without.",
            trial=TriedMend(mends.WITH_ITS_VALUE, None, case.rank, k, is_below, why_not),
        )
    elif not case.is_lost(k):
        yield _found(case, cut_off, metric)
        return
    if case.is_own is False:
        yield _foreign(case, own, k)
    if case.rank is None:
        if not case.vector and case.is_own is not False:
            yield Diagnosis("not told", "It could not be ranked.")
    elif case.rank <= k:
        if case.passes is not False:
            yield from _search(case, k, is_below=is_below)
    elif metric != declared and case.declared_rank is not None and case.declared_rank <= k:
        named = NAMES[declared]
        yield Diagnosis(
            "search",
            f"The store ranks by {NAMES[metric]}, the function is made for {named}.",
            f"Give the index {named}, or put in vectors of unit length.",
            "metric",
            TriedMend(mends.by_metric(named), case.rank, case.declared_rank, k, is_below),
        )
    if case.rank is None or case.rank > k:
        yield from behind(case, k, is_below=is_below)


def _found(case: Case, cut_off: ShownResults, metric: Metric) -> Diagnosis:
    given = case.rank if case.answer is None or case.answer.failed else case.answer.rank
    if given is None or given > cut_off.k:
        assert case.answer is not None
        assert case.answer.copy is not None
        name, place = case.answer.copy
        return Diagnosis("found", f"A copy of its text, {name}, is {nth(place)} of {cut_off.k}.", cause="copy")
    if cut_off.shows(case.cosine, case.score, metric):
        return Diagnosis("found", f"It is {nth(given)} of {cut_off.k}.")
    assert case.cosine is not None
    own, what = cut_off.value(case.cosine, case.score, metric), f"its cosine of {case.cosine:.2f}"
    distance = -case.score if metric == "l2" and case.score is not None else None
    if cut_off.scale == "relevance" and distance is not None:
        what = (
            f"LangChain's relevance of it, {own:.2f} (1 − d²/√2 of its squared distance {distance:.2f}; cosine "
            f"{case.cosine:.2f}),"
        )
    elif distance is not None:
        what += f" (squared distance {distance:.2f})"
    elif metric == "dot" and case.score is not None and abs(case.score - case.cosine) > 0.005:
        what += f" (inner product {case.score:.2f})"
    return Diagnosis(
        "cut-off",
        f"It is {nth(given)}, and {what} is below the cut-off of {cut_off.least:g}.",
        f"Lower the cut-off to {own - 0.005:.2f}; embaudit switch says what else that lets in.",
        "score",
        TriedMend(mends.LOWER_CUT_OFF, given, given, cut_off.k),
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


def _again(case: Case, k: int) -> TriedMend:
    why_not = "" if case.again is not None else "the function gives no vector for its text"
    if case.row is not None and not case.row.text:
        why_not = "the store does not have its text"
    return TriedMend(mends.AGAIN, case.rank, case.again, k, mends.AGAIN.name in case.below, why_not)


def _all_again(case: Case, k: int) -> TriedMend:
    if case.anew is None:
        return TriedMend(mends.ALL_AGAIN, case.rank, None, k, why_not="the store does not have the texts of its rows")
    return case.anew.trial(mends.ALL_AGAIN, case.rank, k)


def _unsearchable(case: Case, k: int) -> Diagnosis:
    is_another = OTHER_QUERIES in case.vector
    return Diagnosis(
        "vector",
        f"Its vector is {case.vector}: no search can find it.",
        "Ask with the function that built the index, or encode all of its rows again."
        if is_another
        else "Encode this row again.",
        case.vector,
        _all_again(case, k) if is_another else _again(case, k),
    )


def _foreign(case: Case, own: float, k: int) -> Diagnosis:
    whose = f": it is that of the text of {case.of_other}" if case.of_other else ""
    apart = "" if case.apart is None else f" (1 − cosine {case.apart:.2g})"
    if own < MOSTLY and not case.of_other:
        return Diagnosis(
            "vector",
            f"Its vector was not built by this function from its text{apart}, and of rows drawn at random {own:.0%} "
            "were: the index is another function's.",
            "Ask with the function that built it, or encode all of its rows again; embaudit vectors says which rows.",
            "foreign index",
            _all_again(case, k),
        )
    return Diagnosis(
        "vector",
        f"Its vector was not built by this function from its text{apart}{whose}.",
        "Encode this row again; embaudit vectors says how many others are so.",
        "another text" if case.of_other else "foreign",
        _again(case, k),
    )


def _search(case: Case, k: int, *, is_below: bool) -> Iterator[Diagnosis]:
    """Exactly it is among the first k: what would make the store give it, the cheapest first."""
    answer = case.answer
    if answer is not None and answer.typed is not None:
        typed = answer.typed
        yield Diagnosis(
            "filter",
            f"The filter asks for {typed.called(typed.wanted)} in {typed.name}, and the row has "
            f"{typed.called(typed.has)}, which the store tells apart.",
            f"Ask for {typed.called(typed.has)}, or give {typed.name} one type in all rows.",
            "type",
            TriedMend(mends.IN_ITS_TYPE, None, typed.rank, k, is_below),
        )
    settings = f" ({answer.index}, {answer.settings})" if answer is not None and answer.settings else ""
    anew = Diagnosis(
        "search",
        f"Exactly it is {nth(case.rank or 0)}, and the store's search does not give it{settings}.",
        "Build the index anew; embaudit search says how many rows are so.",
        "approximate",
        TriedMend(mends.EXACT, None, case.rank, k, is_below),
    )
    for said, rank in () if answer is None else answer.finds:
        trial = TriedMend(mends.setting(said), None, rank, k, is_below)
        yield replace(anew, mend=f"Set {said}; embaudit search says what that costs.", trial=trial)
    yield anew
