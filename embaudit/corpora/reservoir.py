"""Rows drawn from a source while it streams by: no more of them are in memory than stay."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from embaudit.corpora.shapes import Text, TextPair
from embaudit.draw import pair_text, rank


@dataclass
class _Drawn:
    row: Text | TextPair
    number: int
    copies: int = 0


class Reservoir:
    """The distinct rows of lowest rank: those that a draw of the whole source takes.

    Two rows that say the same have one rank, so that duplicates of rows that stay are found without remembering the
    others. The first of them stays.

    Attributes:
        left_out: rows that were seen and are not among the drawn ones, duplicates of such rows included.
    """

    # Any row to come may be drawn.
    is_full = False

    def __init__(self, rows: int, seed: int) -> None:
        self._rows, self._seed = rows, seed
        self._drawn: dict[tuple[int, str], _Drawn] = {}
        # The highest rank first.
        self._heap: list[tuple[int, str]] = []
        self._seen = 0
        self.left_out = 0

    def add(self, row: Text | TextPair) -> None:
        """See a row."""
        self._seen += 1
        said, relation = (row.text, "") if isinstance(row, Text) else (pair_text(row.first, row.second), row.relation)
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
        self._drawn[key] = _Drawn(row, self._seen)

    def drawn(self) -> Iterator[Text | TextPair]:
        """The rows that stay, in the order of the source."""
        for one in sorted(self._drawn.values(), key=lambda one: one.number):
            yield one.row

    @property
    def duplicates(self) -> int:
        """How often a row that stays came again."""
        return sum(one.copies for one in self._drawn.values())
