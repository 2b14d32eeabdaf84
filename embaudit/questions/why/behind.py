"""Where a search was lost if exact search has the row behind the first k, too, or not at all. The rules, in order:

``cut-off``   copies of other texts, to the letter or nearly, fill the first k
``function``  without the sticky tokens in it, it would be among the first k; or by the end of a long query alone
``text``      by a field that is not embedded it would be; or by a piece of its text that is not read
``function``  without rows that say nothing, headings, and rows in everybody's results it would be; or with typos mended
``text``      by a piece of its text that is read it would be
``function``  asked otherwise it would be
``cut-off``   it is just behind the first k, at 3 k at most
``function``  by words besides it would be; or by another function
``function``  anything else: it is not put near
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from embaudit.questions.why import mends
from embaudit.questions.why.above import COPIES, ODD, counted_kinds
from embaudit.questions.why.case import JUST_BEHIND, Case, Diagnosis
from embaudit.questions.why.mends import AS_MENDED, ENDS, Mend, MendCost, TriedMend, nth
from embaudit.words.sentences import cut, quoted

Tried = Callable[[Mend, int | None], TriedMend]


def behind(case: Case, k: int, *, is_below: bool = False) -> Iterator[Diagnosis]:
    """What holds of a row that is not among the first k, with what came of mending it.

    Args:
        is_below: whether its score is below the cut-off, as long as neither query nor vector changes.
    """

    def trial(mend: Mend, after: int | None) -> TriedMend:
        return TriedMend(
            mend, case.rank, after, k, is_below if mend.cost == MendCost.ROWS_OUT else mend.name in case.below
        )

    distinct, even = case.rank_without(*COPIES), case.rank_without(*ODD)
    if distinct is not None and case.rank is not None and distinct <= k:
        yield _copies(case, case.rank - distinct, trial(mends.WITHOUT_COPIES, distinct))
    if case.sticky_rank is not None and case.sticky_rank <= k:
        yield Diagnosis(
            "function",
            f"It has sticky tokens, or the query has: {', '.join(case.sticky[:3])}.",
            "Take them out of texts before they are embedded: embaudit screen FILE names the texts.",
            "sticky tokens",
            trial(mends.WITHOUT_STICKY, case.sticky_rank),
        )
    read = case.query_read if case.query_read is not None and case.query_read.is_cut else None
    known = sorted((one for one in case.readings if one[1] <= k), key=lambda one: one[1])
    readings = {said: trial(mends.asked(said), rank) for said, rank in known}
    for said in ENDS:
        if read is not None and said in readings:
            yield Diagnosis(
                "function",
                f"The query has {read.tokens:,} tokens, of which this function reads {read.limit:,}.",
                f"Ask {said}, or make one question of the history first.",
                "long query",
                readings[said],
            )
    if case.field is not None and case.field.best <= k:
        yield _field(case, trial)
    pieces = list(_piece(case, trial)) if case.piece_rank is not None and case.piece_rank <= k else []
    is_unread = any(one.cause == "beyond the limit" for one in pieces)
    if is_unread:
        yield from pieces
    if even is not None and even <= k and any(one.kind in ODD_ROWS for one in case.above):
        yield _odd(case, trial(mends.WITHOUT_ODD, even))
    wordings = [
        Diagnosis("function", "The query's wording loses it.", f"Ask {said}.", "query", one)
        for said, one in readings.items()
    ]
    yield from (one for one in wordings if one.mend.startswith(f"Ask {AS_MENDED}"))
    if not is_unread:
        yield from pieces
    yield from (one for one in wordings if not one.mend.startswith(f"Ask {AS_MENDED}"))
    if case.rank is None:
        return
    if case.rank <= JUST_BEHIND * k:
        # The store's own search may not give what stands there exactly.
        given = case.rank if case.answer is None or case.answer.failed else case.answer.wide
        for most in (times * k for times in range(2, JUST_BEHIND + 1) if case.rank <= times * k):
            yield Diagnosis(
                "cut-off",
                f"It is just behind the first {k}{_above_it(case)}.",
                f"Ask for {most}, and rank them again.",
                "k",
                TriedMend(mends.results(most), case.rank, given, most, is_below),
            )
    words = case.words is not None and case.words <= k
    if words:
        yield Diagnosis(
            "function",
            f"The function puts it {nth(case.rank)}, and BM25 has it at {case.words:,}.",
            "Search by words besides (hybrid), or tune the function on such pairs.",
            "words",
            TriedMend(mends.BESIDE_WORDS, case.rank, case.hybrid, k),
        )
    if case.also is not None and case.also.is_within(k):
        yield Diagnosis(
            "function",
            f"The function puts it {nth(case.rank)}; {case.also}.",
            "embaudit switch says what becomes of this index and of its cut-offs with that function.",
            "another function",
            case.also.trial(mends.function(case.also.name), case.rank, k),
        )
    if read is not None:
        yield Diagnosis(
            "function",
            f"The query has {read.tokens:,} tokens, of which this function reads the first {read.limit:,}; so it puts "
            f"the row {nth(case.rank)}.",
            "Ask a shorter query: what is asked, without the history before it.",
            "long query",
        )
    yield Diagnosis(
        "function",
        f"The function puts it {nth(case.rank)}.",
        "Another function, or the query in other words; embaudit check says what this one is worth.",
    )


def _above_it(case: Case) -> str:
    odd = counted_kinds(case.above)
    return f"; of those above it {odd}" if odd else ", and nothing above it is odd"


def _copies(case: Case, copies: int, trial: TriedMend) -> Diagnosis:
    """Copies, to the letter or nearly, fill the first k."""
    is_near = any(one.kind == "near copy" for one in case.above)
    what, one = ("near copies", "A near copy") if is_near else ("copies", "A copy")
    many = f"{copies:,} {what} of other texts stand above it."
    return Diagnosis(
        "cut-off",
        many if copies > 1 else f"{one} of another text stands above it.",
        "Keep one revision of each text in the index, or one of them in results."
        if is_near
        else "Remove duplicates from the index, or from results.",
        "copies",
        trial,
    )


# What rows of a kind are, and what mends it.
ODD_ROWS = {
    "no content": (
        "without content",
        "Leave them out of the index; embaudit vectors and the measure attractors name such rows.",
    ),
    "few words": ("of a few words", "Join headings with the text below them, or leave them out of the index."),
    "hub": (
        "in everybody's results",
        "Leave them out of the index; embaudit vectors and the measure attractors name such rows.",
    ),
}


def _odd(case: Case, trial: TriedMend) -> Diagnosis:
    """Rows of an odd kind fill the first k; most are of the kind that is named."""
    odd = [one for one in case.above if one.kind in ODD_ROWS]
    counts = {kind: sum(one.kind == kind for one in odd) for kind in ODD_ROWS}
    kind = max(counts, key=lambda one: counts[one])
    what, mend = ODD_ROWS[kind]
    first = next(one for one in odd if one.kind == kind)
    if counts[kind] == len(odd):
        some = f"{len(odd):,} rows {what} stand" if len(odd) > 1 else f"A row {what} stands"
    else:
        some = f"{len(odd):,} rows that are odd ({counted_kinds(odd)}) stand"
    shown = f"{cut(first.text or first.id)!r}" + (" first" if len(odd) > 1 else "")
    return Diagnosis("function", f"{some} above it ({shown}).", mend, "hubs" if kind == "hub" else kind, trial)


def _field(case: Case, trial: Tried) -> Diagnosis:
    field = case.field
    assert field is not None
    is_before = field.rank == field.best
    mend = f"Embed {field.name} with the text, or filter by it."
    return Diagnosis(
        "text",
        f"What is asked for ({quoted(' '.join(field.words))}) stands in {field.name} ({quoted(field.value)}), which is "
        "not embedded.",
        mend if is_before else f"Embed {field.name} as a row of its own, or filter by it.",
        "another field",
        trial(mends.field(field.name, is_before), field.best),
    )


def _piece(case: Case, trial: Tried) -> Iterator[Diagnosis]:
    """A part of its text that answers."""
    piece, read = case.piece, case.read
    if piece is None or not case.piece_answers:
        return
    words = case.piece_words or piece.end - piece.start
    size = f"about {words:,} words"
    if read is not None and read.limit and read.tokens and case.row is not None and case.row.text:
        size = f"about {max(1, round(words * read.tokens / len(case.row.text.split()))):,} tokens"
    mend = f"Store pieces of {size}, and rank a document by its best one."
    tried = trial(mends.IN_PIECES, case.piece_rank)
    if piece.is_behind and read is not None and read.limit is not None:
        what = f"What answers stands behind token {read.limit:,}, where this function stops reading."
        yield Diagnosis("text", what, mend, "beyond the limit", tried)
    else:
        what = f"What answers is a part of a longer text (words {piece.start + 1:,} to {piece.end:,})."
        yield Diagnosis("text", what, mend, "piece", tried)
