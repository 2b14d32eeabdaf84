"""What is known of one search: the row, its vector, its ranks, who stands above it; and what is said of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

from embaudit.questions.report import Lost
from embaudit.questions.why.above import Kind, RowAbove
from embaudit.questions.why.built import ReadOfText, TextPiece
from embaudit.questions.why.mends import Mend, TriedMend
from embaudit.questions.why.rows import ExpectedRow, FoundElsewhere
from embaudit.stores.store import Metric
from embaudit.words.masking import masked
from embaudit.words.sentences import punctuated


@dataclass(frozen=True)
class Diagnosis:
    """Where one search was lost.

    Attributes:
        lost: in a word.
        cause: what exactly, in a word or two; empty where the first says it.
        sentence: what happened there, and what came of trying its mend.
        mend: what would mend it; empty if nothing has to be.
        trial: of that; None if there is nothing to try.
        trials: of all that would mend it, this one's too.
    """

    lost: Lost
    sentence: str
    mend: str = ""
    cause: str = ""
    trial: TriedMend | None = None
    trials: tuple[TriedMend, ...] = ()

    def __post_init__(self) -> None:
        # Like a finding, it has what libraries and stores said put into it.
        for name in ("sentence", "mend"):
            object.__setattr__(self, name, punctuated(masked(getattr(self, name))))

    @property
    def is_confirmed(self) -> bool | None:
        """Whether its mend alone puts the row among the results; None if that was not tried."""
        return None if self.trial is None else self.trial.is_confirmed

    @classmethod
    def first_confirmed(cls, found: Iterable[Diagnosis]) -> Diagnosis:
        """Of what holds, the first that its mend confirms; if none does, the first. All say what was tried."""
        known = list(found)
        named = next((one for one in known if one.is_confirmed), known[0])
        trials = {one.trial.mend.name: one.trial for one in known if one.trial is not None}
        sentence = named.sentence if named.trial is None else f"{named.sentence} {named.trial.told}"
        return replace(named, sentence=sentence, trials=tuple(trials.values()))

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

    def value(self, cosine: float, score: float | None, metric: Metric) -> float:
        """What is compared with the cut-off, of a row with this cosine and this score by the store's metric."""
        return 1 + score / sqrt(2) if self.scale == "relevance" and metric == "l2" and score is not None else cosine

    def shows(self, cosine: float | None, score: float | None, metric: Metric) -> bool:
        """Whether a result is not below the cut-off."""
        return self.least is None or cosine is None or self.value(cosine, score, metric) >= self.least


def rounded(rank: int) -> int:
    """The next ten."""
    return -(-rank // 10) * 10


def heading(one: Diagnosis) -> str:
    named = {
        **{"found": "Found", "not told": "Not told", "absent": "Lost: no such row"},
        **{"came up": "It came up", "not shown": "It does not come up"},
    }
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


# Behind the numbers of every row's vector, where queries have fewer.
OTHER_QUERIES = "those of this function's queries of"
# Times k: up to there, asking for more is what mends it.
JUST_BEHIND = 3


@dataclass(frozen=True)
class OfAnotherType:
    """A filter's value that a row has in another type, by which a store tells the two apart.

    Attributes:
        wanted, has: what is asked for, and what the row has.
        rank: of the row if that is asked for.
    """

    name: str
    wanted: object
    has: object
    rank: int

    @staticmethod
    def called(value: object) -> str:
        """``the number 2021``, ``the text '2021'``, ``true``."""
        if isinstance(value, bool):
            return str(value).lower()
        return f"the text {value!r}" if isinstance(value, str) else f"the number {value}"


@dataclass(frozen=True)
class StoreAnswer:
    """What the store's own search gave.

    Attributes:
        rank: at the present settings, among k; None: not among them.
        wide: likewise among a hundred; None: not asked, or not among them.
        finds: settings at which the row is among the first k, and its rank there; the least first.
        index: what answers.
        settings: that are in force.
        given: ids of the rows that it gave.
        copy: id and rank of the first of them that has the expected row's text; None if there is none.
        failed: why it could not be asked; empty if it could.
        typed: a filter's value that the row has in another type, if it is found by that; None if not.
    """

    rank: int | None = None
    wide: int | None = None
    finds: tuple[tuple[str, int], ...] = ()
    index: str = ""
    settings: str = ""
    given: tuple[str, ...] = ()
    copy: tuple[str, int] | None = None
    failed: str = ""
    typed: OfAnotherType | None = None


@dataclass(frozen=True)
class InAField:
    """What was asked for, in a field of the row that is not embedded.

    Attributes:
        name, value: of the field.
        words: of the query, that it has and the text has not.
        rank, alone: of the row if the field stood before its text, or were all of it.
    """

    name: str
    value: str
    words: tuple[str, ...]
    rank: int = 0
    alone: int = 0

    @property
    def best(self) -> int:
        return min(self.rank, self.alone)


@dataclass(frozen=True)
class ByAnother:
    """Where another function puts a row.

    Attributes:
        name: of the function.
        rank: exactly, or about.
        low, high: its interval; None if it is exact.
        rows: of the store that are ranked.
        compared: of these, those that it encoded.
    """

    name: str
    rank: int
    low: int | None
    high: int | None
    rows: int
    compared: int

    def is_within(self, k: int) -> bool:
        """Whether it is among the first k for certain."""
        return (self.rank if self.high is None else self.high) <= k

    def trial(self, mend: Mend, before: int | None, k: int) -> TriedMend:
        """Of all rows, encoded by it: at worst."""
        return TriedMend(mend, before, self.rank if self.high is None else self.high, k)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.name} has it at {self.rank:,} of {self.rows:,}"
        return (
            f"{self.name} has it at about {self.rank:,} ({self.low:,} to {self.high:,}) of {self.rows:,}, from "
            f"{self.compared:,} of them"
        )


@dataclass(frozen=True)
class Case:
    """One query and one row that it should find.

    Attributes:
        expected: as it was asked for.
        row: None if there is no such row.
        near_ids: ids that look like the one that was expected.
        elsewhere: ids of other rows that hold its text, or a part of it.
        in_another: field or part of the place that has it; None if none does.
        vector: what is wrong with its vector: ``none``, ``zeros``, ``NaN or infinity``, or ``of N dimensions``; empty
            if it can be searched.
        is_own: whether the function built it from the row's text; None if that is not known.
        apart: 1 − cosine to the function's own.
        of_other: id of the row whose text its vector is of.
        passes: whether the filter keeps it; None without one.
        read: how much of its text the function reads.
        query_has_vector: whether the function gives a vector of the query.
        rank, score: exactly, by the store's metric, under the filter; None if it could not be ranked.
        cosine: of query and row.
        declared_rank: by the metric that the function declares, where the store has another.
        above: the rows above it, nearest first; at most as many as were kept.
        in_results: of other rows, the share that has it among its own first ten.
        query_read: how much of the query the function reads.
        piece, piece_rank: the piece of its text that comes nearest, and the rank that it would have in its place.
        piece_words: of the longest piece that would serve, how many words it has.
        piece_answers: whether it has the query's words, or comes nearer than what is found by more than chance.
        field: another field that has what was asked for; None if none does.
        readings: other ways to ask, with the rank then.
        sticky, sticky_rank: severe tokens in the query or in its text, and the rank without them.
        words: rank by BM25; None if it has none of the query's words, or there are no texts.
        hybrid: rank if that and the rank by vectors are fused; None likewise.
        again: rank if its text is encoded again; None if its vector is the function's, or it has no text.
        anew: likewise if all rows are; None if most of the index is the function's.
        below: of what was tried, that at which its score is below the cut-off.
        answer: of the store's own search; None if it has none.
        also: by another function; None if none was named, or the row is not lost.
    """

    query: str
    expected: str
    row: ExpectedRow | None = None
    near_ids: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    in_another: FoundElsewhere | None = None
    vector: str = ""
    is_own: bool | None = None
    apart: float | None = None
    of_other: str | None = None
    passes: bool | None = None
    read: ReadOfText | None = None
    query_read: ReadOfText | None = None
    query_has_vector: bool = True
    rank: int | None = None
    score: float | None = None
    cosine: float | None = None
    declared_rank: int | None = None
    above: tuple[RowAbove, ...] = ()
    in_results: float = 0.0
    piece: TextPiece | None = None
    piece_rank: int | None = None
    piece_words: int = 0
    piece_answers: bool = True
    field: InAField | None = None
    readings: tuple[tuple[str, int], ...] = ()
    sticky: tuple[str, ...] = ()
    sticky_rank: int | None = None
    words: int | None = None
    hybrid: int | None = None
    again: int | None = None
    anew: ByAnother | None = None
    below: frozenset[str] = frozenset()
    answer: StoreAnswer | None = None
    also: ByAnother | None = None

    @property
    def can_be_searched(self) -> bool:
        return self.row is not None and not self.vector and self.passes is not False

    def is_lost(self, k: int) -> bool:
        """Whether there is a row that the query could find, and does not: by the store's own search, if it has one."""
        if self.row is None or not self.query_has_vector:
            return False
        rank = self.rank if self.answer is None or self.answer.failed else self.answer.rank
        is_copied = self.answer is not None and self.answer.copy is not None
        return self.passes is False or not ((rank is not None and rank <= k) or is_copied)

    def rank_without(self, *kinds: Kind) -> int | None:
        """Its rank if rows above it of these kinds were none; None if not all of them are known."""
        if self.rank is None or self.rank > len(self.above) + 1:
            return None
        return self.rank - sum(one.kind in kinds for one in self.above)
