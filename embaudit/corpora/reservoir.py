"""Draws rows from a stream, keeping only the drawn ones in memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from embaudit.corpora.draw import pair_text, rank
from embaudit.corpora.shapes import Text, TextPair


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
