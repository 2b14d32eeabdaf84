"""What is known of one search: the row, its vector, its ranks, and who stands above it."""

from __future__ import annotations

from dataclasses import dataclass

from embaudit.questions.why.above import Kind, RowAbove
from embaudit.questions.why.absent import FoundElsewhere
from embaudit.questions.why.gathered import ExpectedRow
from embaudit.questions.why.mends import Mend, TriedMend
from embaudit.questions.why.pieces import ReadOfText, TextPiece

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

    @property
    def best_reading(self) -> tuple[str, int] | None:
        return min(self.readings, key=lambda one: one[1], default=None)
