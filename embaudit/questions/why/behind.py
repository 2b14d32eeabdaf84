"""Where a search was lost if exact search has the row behind the first k, too. The first rule that holds is said:

``cut-off``   copies of other texts, to the letter or nearly, fill the first k
``function``  without the sticky tokens in it, it would be among the first k; or by the end of a long query alone
``text``      by a field that is not embedded it would be; or by a piece of its text alone
``function``  without rows that say nothing, headings, and rows in everybody's results it would be; or asked otherwise
``cut-off``   it is just behind the first k, at 3 k at most
``function``  anything else: it is not put near
"""

from __future__ import annotations

from embaudit.questions.why.above import COPIES, ODD, counted_kinds
from embaudit.questions.why.case import Case, InAField
from embaudit.questions.why.readings import ENDS
from embaudit.questions.why.verdict import Diagnosis, nth, rounded
from embaudit.words.sentences import cut, quoted

# Times k: up to there, asking for more is what mends it.
JUST_BEHIND = 3


def behind(case: Case, k: int) -> Diagnosis:
    """Exact search has it behind the first k, too."""
    assert case.rank is not None
    distinct = case.rank_without(*COPIES)
    if distinct is not None and distinct <= k:
        return _copies(case, distinct)
    if case.sticky_rank is not None and case.sticky_rank <= k:
        return Diagnosis(
            "function",
            f"Without the sticky tokens in it ({', '.join(case.sticky[:3])}) it is {nth(case.sticky_rank)}.",
            "Take them out of texts before they are embedded: embaudit screen FILE names the texts.",
            "sticky tokens",
        )
    best = case.best_reading
    read = case.query_read
    if read is not None and read.is_cut and best is not None and best[1] <= k and best[0] in ENDS:
        return Diagnosis(
            "function",
            f"The query has {read.tokens:,} tokens, of which this function reads {read.limit:,}: asked {best[0]} it is "
            f"{nth(best[1])}.",
            f"Ask {best[0]}, or make one question of the history first.",
            "long query",
        )
    if case.field is not None and case.field.best <= k:
        return _field(case, case.field)
    if case.piece is not None and case.piece_rank is not None and case.piece_rank <= k and case.piece_answers:
        return _text(case)
    even = case.rank_without(*ODD)
    if even is not None and even <= k:
        return _odd(case, even)
    if best is not None and best[1] <= k:
        return Diagnosis(
            "function",
            f"Asked so it is {nth(case.rank)}; {best[0]} it is {nth(best[1])}.",
            f"Ask {best[0]}.",
            "query",
        )
    if case.rank <= JUST_BEHIND * k:
        return Diagnosis(
            "cut-off",
            f"It is {nth(case.rank)}, just behind the first {k}{_above_it(case)}.",
            f"Ask for {rounded(case.rank)}, and rank them again.",
            "k",
        )
    words = case.words is not None and case.words <= k
    if not words and case.also is not None and case.also.is_within(k):
        return Diagnosis(
            "function",
            f"The function puts it {nth(case.rank)}; {case.also}.",
            "embaudit switch says what becomes of this index and of its cut-offs with that function.",
            "another function",
        )
    if read is not None and read.is_cut:
        return Diagnosis(
            "function",
            f"The query has {read.tokens:,} tokens, of which this function reads the first {read.limit:,}; so it puts "
            f"the row {nth(case.rank)}.",
            "Ask a shorter query: what is asked, without the history before it.",
            "long query",
        )
    has_it = f", BM25 has it at {case.words:,}" if words and case.words is not None else ""
    return Diagnosis(
        "function",
        f"The function puts it {nth(case.rank)}{has_it}.",
        "Search by words besides (hybrid), or tune the function on such pairs."
        if words
        else "Another function, or the query in other words; embaudit check says what this one is worth.",
        "words" if words else "",
    )


def _above_it(case: Case) -> str:
    odd = counted_kinds(case.above)
    return f"; of those above it {odd}" if odd else ", and nothing above it is odd"


def _copies(case: Case, distinct: int) -> Diagnosis:
    """Copies, to the letter or nearly, fill the first k."""
    assert case.rank is not None
    copies = case.rank - distinct
    is_near = any(one.kind == "near copy" for one in case.above)
    what = "near copies" if is_near else "copies"
    one = "A near copy" if is_near else "A copy"
    return Diagnosis(
        "cut-off",
        f"{copies:,} {what} of other texts stand above it: without them it is {nth(distinct)}."
        if copies > 1
        else f"{one} of another text stands above it: without it, it is {nth(distinct)}.",
        "Keep one revision of each text in the index, or one of them in results."
        if is_near
        else "Remove duplicates from the index, or from results.",
        "copies",
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


def _odd(case: Case, even: int) -> Diagnosis:
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
    cause = "hubs" if kind == "hub" else kind
    return Diagnosis("function", f"{some} above it ({shown}); without, it is {nth(even)}.", mend, cause)


def _field(case: Case, field: InAField) -> Diagnosis:
    words = quoted(" ".join(field.words))
    is_before = field.rank == field.best
    how = "with that before its text" if is_before else "by that alone"
    mend = f"Embed {field.name} with the text, or filter by it."
    return Diagnosis(
        "text",
        f"What is asked for ({words}) stands in {field.name} ({quoted(field.value)}), which is not embedded: {how} it "
        f"would be {nth(field.best)}, and not {nth(case.rank or 0)}.",
        mend if is_before else f"Embed {field.name} as a row of its own, or filter by it.",
        "another field",
    )


def _text(case: Case) -> Diagnosis:
    piece, read = case.piece, case.read
    assert piece is not None
    assert case.piece_rank is not None
    alone = f"that piece alone would be {nth(case.piece_rank)}"
    words = piece.end - piece.start
    size = f"about {words:,} words"
    if read is not None and read.limit and read.tokens and case.row is not None and case.row.text:
        size = f"about {max(1, round(words * read.tokens / len(case.row.text.split()))):,} tokens"
    mend = f"Store pieces of {size}, and rank a document by its best one."
    if piece.is_behind and read is not None and read.limit is not None:
        return Diagnosis(
            "text",
            f"What answers stands behind token {read.limit:,}, where this function stops reading: {alone}.",
            mend,
            "beyond the limit",
        )
    where = f"words {piece.start + 1:,} to {piece.end:,}"
    return Diagnosis(
        "text",
        f"What answers is a part of a longer text ({where}): {alone}, the whole is {nth(case.rank or 0)}.",
        mend,
        "piece",
    )
