"""Keeps rows from a stream of rows and flaws, and counts everything else.

Every reader of this package feeds :func:`keep_rows`, so duplicates, blanks and limits are treated the same for every
source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from embaudit.corpora.draw import Draw
from embaudit.corpora.reservoir import Reservoir
from embaudit.corpora.shapes import IngestCounts, Text, TextPair


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
