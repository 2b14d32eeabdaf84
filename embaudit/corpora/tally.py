"""Keeps rows from a stream of rows and flaws, and counts everything else.

Every reader of this package feeds :func:`keep_rows`, so duplicates, blanks and limits are treated the same for every
source.

Rows can be drawn from a stream, too, with only the drawn ones in memory.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from embaudit.corpora.draw import Draw, pair_text, rank
from embaudit.corpora.shapes import IngestCounts, Text, TextPair


@dataclass
class _Candidate:
    row: Text | TextPair
    number: int
    copies: int = 0


class Reservoir:
    """The distinct rows of lowest rank, as a draw from the whole source would give.

    Identical rows have the same rank, so duplicates of kept rows are found without remembering the others. The first
    one is kept.

    Attributes:
        left_out: number of rows that were not drawn, including their duplicates.
    """

    # Any later row may be drawn.
    is_full = False

    def __init__(self, rows: int, seed: int) -> None:
        self._rows, self._seed = rows, seed
        self._drawn: dict[tuple[int, str], _Candidate] = {}
        # A heap, highest rank first.
        self._heap: list[tuple[int, str]] = []
        self._seen = 0
        self.left_out = 0

    def add(self, row: Text | TextPair) -> None:
        """Process a row."""
        self._seen += 1
        if isinstance(row, Text):
            said, relation = row.text, ""
        else:
            said, relation = pair_text(row.first, row.second), f"{row.relation} {row.data_set or ''}"
        place = int(rank(said, self._seed), 16)
        key = (place, relation)
        if key in self._drawn:
            self._drawn[key].copies += 1
            return
        if len(self._heap) < self._rows:
            heapq.heappush(self._heap, (-place, relation))
        elif -place > self._heap[0][0]:
            highest, other = heapq.heapreplace(self._heap, (-place, relation))
            self.left_out += 1 + self._drawn.pop((-highest, other)).copies
        else:
            self.left_out += 1
            return
        self._drawn[key] = _Candidate(row, self._seen)

    def drawn(self) -> Iterator[Text | TextPair]:
        """The drawn rows, in source order."""
        for one in sorted(self._drawn.values(), key=lambda one: one.number):
            yield one.row

    @property
    def duplicates(self) -> int:
        """How often a kept row was repeated."""
        return sum(one.copies for one in self._drawn.values())


@dataclass(frozen=True)
class Flaw:
    """A dropped row: which count it belongs to, and a reason for error messages."""

    counted_as: Literal["blank", "broken", "undecodable"]
    reason: str = ""


LONGEST_REASON = 200
BLANK = Flaw("blank")
UNDECODABLE = Flaw("undecodable", "bytes that are not UTF-8")


@dataclass(frozen=True)
class KeptRows:
    """The result: rows in order, and counts."""

    rows: tuple[Text | TextPair, ...]
    counts: IngestCounts


def keep_rows(rows: Iterable[Text | TextPair | Flaw], draw: Draw | None = None) -> KeptRows:
    """Drop blanks and exact duplicates (keeping the first), and keep the drawn rows.

    Args:
        draw: with a seed, reads all rows and keeps the drawn ones; for the first rows, reads no more than those; None
            keeps all rows.
    """
    kept = _First(draw.rows if draw else None) if draw is None or draw.seed is None else Reservoir(draw.rows, draw.seed)
    dropped: Counter[str] = Counter()
    first_broken = ""
    for row in rows:
        if isinstance(row, Flaw):
            dropped[row.counted_as] += 1
            if row.counted_as == "broken":
                first_broken = first_broken or row.reason
        elif not (row.text if isinstance(row, Text) else row.first and row.second):
            dropped["blank"] += 1
        else:
            kept.add(row)
            if kept.is_full:
                break
    drawn = tuple(kept.drawn())
    counts = IngestCounts(
        read=len(drawn) + kept.duplicates + kept.left_out + dropped.total(),
        kept=len(drawn),
        duplicate=kept.duplicates,
        blank=dropped["blank"],
        broken=dropped["broken"],
        undecodable=dropped["undecodable"],
        undrawn=kept.left_out,
        first_broken=first_broken[:LONGEST_REASON] or None,
    )
    return KeptRows(drawn, counts)


class _First:
    """The first distinct rows; all of them without a limit."""

    left_out = 0

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._rows: dict[str | tuple[str, ...], Text | TextPair] = {}
        self.duplicates = 0

    @property
    def is_full(self) -> bool:
        return len(self._rows) == self._limit

    def add(self, row: Text | TextPair) -> None:
        # Data sets share pairs (STS Benchmark is made of STS 2012 to 2017), and each keeps its own.
        key = row.text if isinstance(row, Text) else (row.first, row.second, row.relation, row.data_set or "")
        if key in self._rows:
            self.duplicates += 1
        else:
            self._rows[key] = row

    def drawn(self) -> Iterable[Text | TextPair]:
        return self._rows.values()
