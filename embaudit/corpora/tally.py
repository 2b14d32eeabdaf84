"""From a stream of rows and flaws to the rows that are kept and the counts of everything else.

Every reader of this package yields into :func:`keep_rows`, so that duplicates, blanks and limits mean the
same for every source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from embaudit.corpora.reservoir import Reservoir
from embaudit.corpora.shapes import IngestCounts, Text, TextPair
from embaudit.draw import Draw


@dataclass(frozen=True)
class Flaw:
    """A row that is dropped: why it is counted, and a reason that an error message can quote."""

    counted_as: Literal["blank", "broken", "undecodable"]
    reason: str = ""


BLANK = Flaw("blank")
UNDECODABLE = Flaw("undecodable", "bytes that are not UTF-8")


@dataclass(frozen=True)
class KeptRows:
    """The outcome: rows in order, counts, and the reason of the first broken row ("" if none was)."""

    rows: tuple[Text | TextPair, ...]
    counts: IngestCounts
    first_broken: str


def keep_rows(rows: Iterable[Text | TextPair | Flaw], draw: Draw | None = None) -> KeptRows:
    """Drop blanks and exact duplicates (the first stays), and keep as many rows as are drawn.

    Args:
        draw: of a seed: all rows are seen, and those that it draws are kept; the first rows: no more than them are
            seen; None: all are kept.
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
    )
    return KeptRows(drawn, counts, first_broken)


class _First:
    """The first distinct rows; all of them without a limit."""

    left_out = 0

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._rows: dict[str | tuple[str, str, str], Text | TextPair] = {}
        self.duplicates = 0

    @property
    def is_full(self) -> bool:
        return len(self._rows) == self._limit

    def add(self, row: Text | TextPair) -> None:
        key = row.text if isinstance(row, Text) else (row.first, row.second, row.relation)
        if key in self._rows:
            self.duplicates += 1
        else:
            self._rows[key] = row

    def drawn(self) -> Iterable[Text | TextPair]:
        return self._rows.values()
