"""Where a search was lost, in one word, one sentence and one line that mends it.

The rules, in the order of the chain; the first that holds is said:

``absent``    no row has this id or text
``filter``    the row lacks the filter's value
``vector``    it has no vector, or zeros, NaN, another dimension
``found``     the store's own search gives it among the first k (exact search, if it has none), above the cut-off
``vector``    its vector is not the function's of its text
``search``    exactly it is among the first k and the store does not give it; or it is so by the metric that is declared
``cut-off``   its score is below the cut-off; or copies of other texts fill the first k
``function``  without the sticky tokens in it, it would be among the first k
``text``      a piece of its text alone would be among the first k
``function``  rows without content, or in everybody's results, stand above it; or asked otherwise it would be found
``cut-off``   it is just behind the first k, at 3 k at most
``function``  anything else: it is not put near
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from embaudit.comparisons.search.metric import NAMES
from embaudit.comparisons.why.above import COPIES, ODD, counted_kinds
from embaudit.comparisons.why.case import Case, InAField
from embaudit.comparisons.why.readings import ENDS
from embaudit.masking import masked
from embaudit.sentences import first_of, punctuated
from embaudit.shown import cut, quoted
from embaudit.stores.store import Metric

Word = Literal["absent", "filter", "found", "vector", "search", "cut-off", "text", "function", "not told"]
# Times k: up to there, asking for more is what mends it.
JUST_BEHIND = 3
# Of an index, the share of rows that must be the function's, so that a row that is not is an odd one.
MOSTLY = 0.5


@dataclass(frozen=True)
class Lost:
    """Where one search was lost.

    Attributes:
        lost: in a word.
        cause: what exactly, in a word or two; empty where the first says it.
        sentence: what happened there.
        mend: what would mend it; empty if nothing has to be.
    """

    lost: Word
    sentence: str
    mend: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        # Like a finding, it has what libraries and stores said put into it.
        for name in ("sentence", "mend"):
            object.__setattr__(self, name, punctuated(masked(getattr(self, name))))

    @property
    def told(self) -> str:
        """What happened, and what mends it if anything does."""
        return f"{self.sentence} → {self.mend}" if self.mend else self.sentence


@dataclass(frozen=True)
class ShownResults:
    """What an application shows of a search.

    Attributes:
        k: results.
        least: the score that a result must have; None without one.
        scale: of that: the cosine, or LangChain's relevance of a squared distance, 1 − d²/√2.
    """

    k: int
    least: float | None = None
    scale: Literal["cosine", "relevance"] = "cosine"


def where_lost(case: Case, cut_off: ShownResults, metric: Metric, declared: Metric, own: float = 1.0) -> Lost:
    """The first rule that holds.

    Args:
        own: of rows drawn at random, the share that is the function's.
    """
    k = cut_off.k
    if case.row is None:
        return _absent(case)
    if case.passes is False:
        return Lost(
            "filter", "The row is there, and the filter leaves it out.", "Give the row that value, or ask without."
        )
    if case.vector:
        return Lost(
            "vector", f"Its vector is {case.vector}: no search can find it.", "Encode this row again.", case.vector
        )
    if not case.query_has_vector:
        return Lost("not told", "The function gives no vector for this query.", "Ask it in other words.")
    given = case.rank if case.answer is None or case.answer.failed else case.answer.rank
    if given is not None and given <= k:
        if (below := _below(case, given, cut_off, metric)) is not None:
            return below
        return Lost("found", f"It is {_nth(given)} of {k}.")
    if case.answer is not None and case.answer.copy is not None:
        name, place = case.answer.copy
        return Lost("found", f"A copy of its text, {name}, is {_nth(place)} of {k}.", cause="copy")
    if case.is_own is False:
        return _foreign(case, own)
    if case.rank is None:
        return Lost("not told", "It could not be ranked.")
    if case.rank <= k:
        return _search(case)
    if metric != declared and case.declared_rank is not None and case.declared_rank <= k:
        return Lost(
            "search",
            f"The store ranks by {NAMES[metric]}, the function is made for {NAMES[declared]}, by which it would be "
            f"{_nth(case.declared_rank)}, and not {_nth(case.rank)}.",
            f"Give the index {NAMES[declared]}, or put in vectors of unit length.",
            "metric",
        )
    return _behind(case, k)


def _below(case: Case, given: int, cut_off: ShownResults, metric: Metric) -> Lost | None:
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
    return Lost(
        "cut-off",
        f"It is {_nth(given)}, and {what} is below the cut-off of {cut_off.least:g}.",
        f"Lower the cut-off to {own - 0.005:.2f}; embaudit switch says what else that lets in.",
        "score",
    )


def _behind(case: Case, k: int) -> Lost:
    """Exact search has it behind the first k, too."""
    assert case.rank is not None
    distinct = case.rank_without(*COPIES)
    if distinct is not None and distinct <= k:
        return _copies(case, distinct)
    if case.sticky_rank is not None and case.sticky_rank <= k:
        return Lost(
            "function",
            f"Without the sticky tokens in it ({', '.join(case.sticky[:3])}) it is {_nth(case.sticky_rank)}.",
            "Take them out of texts before they are embedded: embaudit screen FILE names the texts.",
            "sticky tokens",
        )
    best = case.best_reading
    read = case.query_read
    if read is not None and read.is_cut and best is not None and best[1] <= k and best[0] in ENDS:
        return Lost(
            "function",
            f"The query has {read.tokens:,} tokens, of which this function reads {read.limit:,}: asked {best[0]} it is "
            f"{_nth(best[1])}.",
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
        return Lost(
            "function",
            f"Asked so it is {_nth(case.rank)}; {best[0]} it is {_nth(best[1])}.",
            f"Ask {best[0]}.",
            "query",
        )
    if case.rank <= JUST_BEHIND * k:
        return Lost(
            "cut-off",
            f"It is {_nth(case.rank)}, just behind the first {k}{_above_it(case)}.",
            f"Ask for {_rounded(case.rank)}, and rank them again.",
            "k",
        )
    words = case.words is not None and case.words <= k
    if not words and case.also is not None and case.also.is_within(k):
        return Lost(
            "function",
            f"The function puts it {_nth(case.rank)}; {case.also}.",
            "embaudit switch says what becomes of this index and of its cut-offs with that function.",
            "another function",
        )
    if read is not None and read.is_cut:
        return Lost(
            "function",
            f"The query has {read.tokens:,} tokens, of which this function reads the first {read.limit:,}; so it puts "
            f"the row {_nth(case.rank)}.",
            "Ask a shorter query: what is asked, without the history before it.",
            "long query",
        )
    has_it = f", BM25 has it at {case.words:,}" if words and case.words is not None else ""
    return Lost(
        "function",
        f"The function puts it {_nth(case.rank)}{has_it}.",
        "Search by words besides (hybrid), or tune the function on such pairs."
        if words
        else "Another function, or the query in other words; embaudit check says what this one is worth.",
        "words" if words else "",
    )


def _above_it(case: Case) -> str:
    odd = counted_kinds(case.above)
    return f"; of those above it {odd}" if odd else ", and nothing above it is odd"


def _copies(case: Case, distinct: int) -> Lost:
    """Copies, to the letter or nearly, fill the first k."""
    assert case.rank is not None
    copies = case.rank - distinct
    is_near = any(one.kind == "near copy" for one in case.above)
    what = "near copies" if is_near else "copies"
    one = "A near copy" if is_near else "A copy"
    return Lost(
        "cut-off",
        f"{copies:,} {what} of other texts stand above it: without them it is {_nth(distinct)}."
        if copies > 1
        else f"{one} of another text stands above it: without it, it is {_nth(distinct)}.",
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


def _odd(case: Case, even: int) -> Lost:
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
    return Lost("function", f"{some} above it ({shown}); without, it is {_nth(even)}.", mend, cause)


def _absent(case: Case) -> Lost:
    if case.elsewhere:
        return Lost(
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
            return Lost(
                "absent",
                f"No row has the id or text {quoted(case.expected)}; {where.field} has it, in {has}.",
                f"Name that column, --id {where.field}, or expect one of these: --expect {where.ids[0]}",
                "another field",
            )
        return Lost(
            "absent",
            f"No row has the id or text {quoted(case.expected)} here; {where.part}, in the same place, has it ({has}).",
            f"Search there, --from {where.part}, or put it into this one.",
            "another part",
        )
    absent = f"No row has the id or text {quoted(case.expected)}."
    if not case.near_ids:
        return Lost("absent", absent, "Put it into the index.")
    first = case.near_ids[0]
    return Lost(
        "absent",
        f"{absent} Ids that look like it: {', '.join(case.near_ids)}.",
        f"If {first} is meant, expect that: --expect {first}. If not, put it into the index.",
    )


def _foreign(case: Case, own: float) -> Lost:
    whose = f": it is that of the text of {case.of_other}" if case.of_other else ""
    apart = "" if case.apart is None else f" (1 − cosine {case.apart:.2g})"
    if own < MOSTLY and not case.of_other:
        return Lost(
            "vector",
            f"Its vector was not built by this function from its text{apart}, and of rows drawn at random {own:.0%} "
            "were: the index is another function's.",
            "Ask with the function that built it, or encode all of its rows again; embaudit vectors says which rows.",
            "foreign index",
        )
    return Lost(
        "vector",
        f"Its vector was not built by this function from its text{apart}{whose}.",
        "Encode this row again; embaudit vectors says how many others are so.",
        "another text" if case.of_other else "foreign",
    )


def _search(case: Case) -> Lost:
    answer = case.answer
    if answer is not None and answer.typed is not None:
        typed = answer.typed
        return Lost(
            "filter",
            f"The filter asks for {typed.called(typed.wanted)} in {typed.name}, and the row has "
            f"{typed.called(typed.has)}, which the store tells apart: asked for that, it is {_nth(typed.rank)}.",
            f"Ask for {typed.called(typed.has)}, or give {typed.name} one type in all rows.",
            "type",
        )
    settings = f" ({answer.index}, {answer.settings})" if answer is not None and answer.settings else ""
    mend = "Build the index anew; embaudit search says how many rows are so."
    if answer is not None and answer.finds is not None:
        mend = f"{answer.finds[0]} finds it ({_nth(answer.finds[1])}); embaudit search says what that costs."
    return Lost(
        "search",
        f"Exactly it is {_nth(case.rank or 0)}, and the store's search does not give it{settings}.",
        mend,
        "approximate",
    )


def _field(case: Case, field: InAField) -> Lost:
    words = quoted(" ".join(field.words))
    is_before = field.rank == field.best
    how = "with that before its text" if is_before else "by that alone"
    mend = f"Embed {field.name} with the text, or filter by it."
    return Lost(
        "text",
        f"What is asked for ({words}) stands in {field.name} ({quoted(field.value)}), which is not embedded: {how} it "
        f"would be {_nth(field.best)}, and not {_nth(case.rank or 0)}.",
        mend if is_before else f"Embed {field.name} as a row of its own, or filter by it.",
        "another field",
    )


def _text(case: Case) -> Lost:
    piece, read = case.piece, case.read
    assert piece is not None
    assert case.piece_rank is not None
    alone = f"that piece alone would be {_nth(case.piece_rank)}"
    words = piece.end - piece.start
    size = f"about {words:,} words"
    if read is not None and read.limit and read.tokens and case.row is not None and case.row.text:
        size = f"about {max(1, round(words * read.tokens / len(case.row.text.split()))):,} tokens"
    mend = f"Store pieces of {size}, and rank a document by its best one."
    if piece.is_behind and read is not None and read.limit is not None:
        return Lost(
            "text",
            f"What answers stands behind token {read.limit:,}, where this function stops reading: {alone}.",
            mend,
            "beyond the limit",
        )
    where = f"words {piece.start + 1:,} to {piece.end:,}"
    return Lost(
        "text",
        f"What answers is a part of a longer text ({where}): {alone}, the whole is {_nth(case.rank or 0)}.",
        mend,
        "piece",
    )


def _nth(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{ending}"


def _rounded(rank: int) -> int:
    """The next ten."""
    return -(-rank // 10) * 10


def heading(one: Lost) -> str:
    named = {"found": "Found", "not told": "Not told", "absent": "Lost: no such row"}
    return named.get(one.lost, f"Lost {heading_of(one.lost)}")


def heading_of(word: str) -> str:
    """Where, as the end of "lost …"."""
    named = {
        "absent": "no such row",
        "filter": "by the filter",
        "vector": "in the vector",
        "search": "in the search",
        "cut-off": "by the cut-off",
        "text": "in the text",
        "function": "by the function",
    }
    return named.get(word, word)
