"""What may be changed for a query to find its row, what that costs, and what came of trying it.

A cause is *confirmed* if its mend, applied alone, puts the row among the results that are shown. Nothing is written to
the store: rows that would be encoded again, cut or left out are so in memory, over exact scores, and a setting is one
of a query.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.measured import words_of

# A word that a typo was made of is so alike.
ALIKE = 0.8
SHORTEST = 4
# Words of a query that may have a beginning which is not what is asked.
LONG = 40
SHORT_LINE = 4
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
LAST_LINE, LAST_BUT_ONE, LAST_SENTENCE, LAST_QUESTION = (
    "by its last line alone",
    "by its last line but one alone",
    "by its last sentence alone",
    "by its last question alone",
)
ENDS = (LAST_LINE, LAST_BUT_ONE, LAST_SENTENCE, LAST_QUESTION)
# How a query without its typos is said to be asked.
AS_MENDED = "as '"


class OtherQuery(NamedTuple):
    """A way to ask: as the end of "asked …", the text, and its role."""

    said: str
    text: str
    role: TextKind


def other_queries(function: EmbeddingFunction, query: str, vocabulary: Set[str]) -> list[OtherQuery]:
    """Those that differ from the query."""
    found = [
        OtherQuery("in lower case", query.lower(), "query"),
        OtherQuery("without punctuation", " ".join(re.sub(r"[^\w\s]", " ", query).split()), "query"),
    ]
    found += [OtherQuery(said, text, "query") for said, text in ends_of(query).items()]
    if (mended := without_typos(query, vocabulary)) is not None:
        found.append(OtherQuery(f"{AS_MENDED}{mended}'", mended, "query"))
    # Many ask for a text as they ask for a document: once is enough.
    ways = {function.alike("document"): "as a document", "text": "without the query's prompt"}
    if function.alike("document") == "text":
        ways["text"] = "as a document"
    found += [OtherQuery(said, query, role) for role, said in ways.items() if role != function.alike("query")]
    return [one for one in found if (one.text != query or one.role != "query") and one.text]


def ends_of(query: str) -> dict[str, str]:
    """The last of several lines, sentences or questions: of a history, that is what is asked."""
    lines = [line.strip() for line in query.splitlines() if line.strip()]
    found = {LAST_LINE: lines[-1]} if len(lines) > 1 else {}
    # "Thanks!"
    if len(lines) > 2 and len(lines[-1].split()) < SHORT_LINE:
        found[LAST_BUT_ONE] = lines[-2]
    if len(query.split()) >= LONG:
        sentences = [one.strip() for one in SENTENCE_END.split(query) if one.strip()]
        questions = [one for one in sentences if one.endswith(("?", "？"))]
        for said, ends in ((LAST_SENTENCE, sentences), (LAST_QUESTION, questions)):
            if len(sentences) > 1 and ends and ends[-1] not in found.values():
                found[said] = ends[-1]
    return found


def without_typos(query: str, vocabulary: Set[str]) -> str | None:
    """The query with each unknown word as the most alike of the store's; None if there is none."""
    mended = query
    for word in words_of(query):
        if len(word) < SHORTEST or word in vocabulary or not word.isalpha():
            continue
        known = [one for one in vocabulary if abs(len(one) - len(word)) <= 2 and one[:1] == word[:1] and one.isalpha()]
        near = difflib.get_close_matches(word, known, n=1, cutoff=ALIKE)
        if near:
            mended = re.sub(rf"\b{re.escape(word)}\b", near[0], mended, flags=re.IGNORECASE)
    return mended if mended != query else None


def encoded(function: EmbeddingFunction, asked: list[OtherQuery]) -> np.ndarray:
    """(n, D) vectors; NaN where there is none."""
    rows: dict[int, np.ndarray] = {}
    for role in dict.fromkeys(one.role for one in asked):
        places = [place for place, one in enumerate(asked) if one.role == role]
        vectors = function.encode([asked[place].text for place in places], role).vectors
        rows |= dict(zip(places, vectors, strict=True))
    return np.array([rows[place] for place in range(len(asked))], dtype=np.float32)


def nth(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{ending}"


class MendCost(IntEnum):
    """What a mend costs, from cheap to dear."""

    QUERY = 0
    ROWS_OUT = 1
    INDEX = 2
    ROWS = 3
    TEXTS = 4
    ALL = 5

    @property
    def shown(self) -> str:
        return (
            "a change of the query",
            "rows left out",
            "an index built from the same rows",
            "some rows encoded again",
            "texts encoded otherwise",
            "all rows encoded again",
        )[self]


@dataclass(frozen=True)
class Mend:
    """One thing that is changed.

    Attributes:
        name: as the start of "…, it is 2nd".
        done: how it is tried.
    """

    name: str
    cost: MendCost
    done: str


WITH_ITS_VALUE = Mend("with that value", MendCost.QUERY, "the row is ranked among those that the filter keeps")
IN_ITS_TYPE = Mend("with the filter in the row's type", MendCost.QUERY, "the store is asked so")
LOWER_CUT_OFF = Mend("with a lower cut-off", MendCost.QUERY, "the results are cut at its score")
MENDED_TYPOS = Mend("with its typos mended", MendCost.QUERY, "the query is encoded so")
WITHOUT_COPIES = Mend("without the copies", MendCost.ROWS_OUT, "of each text above, one row is ranked")
WITHOUT_ODD = Mend("without these rows", MendCost.ROWS_OUT, "they are ranked below it")
EXACT = Mend("in an index built anew", MendCost.INDEX, "every row is looked at")
BESIDE_WORDS = Mend(
    "with a search by words besides",
    MendCost.INDEX,
    "the first hundred by vectors and by BM25 are fused",
)
AGAIN = Mend("encoded again", MendCost.ROWS, "its text's own vector takes the place of the stored one")
WITHOUT_STICKY = Mend("without these tokens", MendCost.ROWS, "query and text are encoded without them")
IN_PIECES = Mend("with that piece in place of the text", MendCost.TEXTS, "pieces of the text are encoded")
ALL_AGAIN = Mend("with all rows encoded again", MendCost.ALL, "up to 2,000 texts of the store are encoded")


def setting(said: str) -> Mend:
    return Mend(f"with {said}", MendCost.QUERY, "the store is asked so")


def results(k: int) -> Mend:
    return Mend(f"with {k:,} results", MendCost.QUERY, "the store is asked for so many")


def by_metric(name: str) -> Mend:
    return Mend(f"by {name}", MendCost.INDEX, "the same rows are ranked by it")


def asked(said: str) -> Mend:
    if said.startswith(AS_MENDED):
        return MENDED_TYPOS
    return Mend(f"asked {said}", MendCost.QUERY, "the query is encoded so")


def field(name: str, is_before: bool) -> Mend:
    return Mend(
        f"with {name} before the text" if is_before else f"by {name} alone", MendCost.TEXTS, "the row is encoded so"
    )


def function(name: str) -> Mend:
    return Mend(f"with {name}", MendCost.ALL, "up to 2,000 texts of the store are encoded by it")


@dataclass(frozen=True)
class TriedMend:
    """A mend that was tried on a query.

    Attributes:
        before: the row's rank as it is; None: it has none.
        after: its rank then; None: it has none, or it was not tried.
        most: results that are shown then.
        is_below: whether its score is below the cut-off even so.
        why_not: why it was not tried; empty if it was.
        is_away: whether the row should not be shown then.
    """

    mend: Mend
    before: int | None
    after: int | None
    most: int
    is_below: bool = False
    why_not: str = ""
    is_away: bool = False

    @property
    def is_confirmed(self) -> bool | None:
        """Whether the row is shown then, as it should, or away; None if that was not tried."""
        if self.why_not:
            return None
        return (self.after is not None and self.after <= self.most and not self.is_below) != self.is_away

    @property
    def told(self) -> str:
        if self.why_not:
            return f"Not tried: {self.why_not}."
        then = "not ranked" if self.after is None else nth(self.after)
        if self.is_confirmed:
            was = "" if self.before in (None, self.after) else f", and not {nth(self.before or 0)}"
            return f"Confirmed: {self.mend.name}, it is {then}{was}."
        low = ", and its score below the cut-off" if self.is_below else ""
        return f"Not confirmed: {self.mend.name}, it is {then}{low}."

    def as_json(self) -> dict[str, Any]:
        return {
            "mend": self.mend.name,
            "cost": self.mend.cost.shown,
            "is_confirmed": self.is_confirmed,
            "rank_before": self.before,
            "rank_after": self.after,
            "why_not": self.why_not,
        }


@dataclass(frozen=True)
class MendOfMany:
    """A mend of a file of queries.

    Attributes:
        found: lost queries that it finds.
        more: of these, those that no cheaper one does.
    """

    mend: Mend
    found: int
    more: int


def cheapest_first(lost: Sequence[Sequence[TriedMend]]) -> Iterator[MendOfMany]:
    """Mends that find lost queries, each once: of the cheapest kind that finds any, the one that finds the most first.

    Greedy, as for a set cover (Chvátal 1979), within one cost after the other.

    Args:
        lost: what was tried on each of them.
    """
    finds: dict[str, set[int]] = {}
    mends: dict[str, Mend] = {}
    for query, trials in enumerate(lost):
        for trial in trials:
            if trial.is_confirmed:
                mends.setdefault(trial.mend.name, trial.mend)
                finds.setdefault(trial.mend.name, set()).add(query)
    done: set[int] = set()
    for cost in MendCost:
        own = [name for name, mend in mends.items() if mend.cost == cost]
        while own:
            best = max(own, key=lambda name: len(finds[name] - done))
            if not finds[best] - done:
                break
            yield MendOfMany(mends[best], len(finds[best]), len(finds[best] - done))
            done |= finds[best]
            own.remove(best)


def told_of_many(mends: Sequence[MendOfMany], lost: int) -> str:
    """ "Of 12 lost queries, 7 would be found with efSearch 200, 2 more encoded again." Empty if nothing finds any."""
    if not mends:
        return ""
    found = [f"{one.more:,} {'more' if place else 'would be found'} {one.mend.name}" for place, one in enumerate(mends)]
    rest = lost - sum(one.more for one in mends)
    found += [f"{rest:,} by nothing that was tried"] if rest else []
    return f"Of {lost:,} lost {'query' if lost == 1 else 'queries'}, {', '.join(found)}."
