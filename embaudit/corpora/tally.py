"""From a stream of rows and flaws to the rows that are kept and the counts of everything else.

Every reader of this package yields into :func:`keep_rows`, so that duplicates, blanks and limits mean the
same for every source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from embaudit.corpora.shapes import IngestCounts, Text, TextPair


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


def keep_rows(rows: Iterable[Text | TextPair | Flaw], limit: int | None = None) -> KeptRows:
    """Drop blanks and exact duplicates (the first stays); stop once ``limit`` rows are kept."""
    kept: list[Text | TextPair] = []
    seen: set[str | tuple[str, str, str]] = set()
    dropped: Counter[str] = Counter()
    first_broken = ""
    for row in rows:
        if isinstance(row, Flaw):
            dropped[row.counted_as] += 1
            if row.counted_as == "broken":
                first_broken = first_broken or row.reason
            continue
        key = row.text if isinstance(row, Text) else (row.first, row.second, row.relation)
        if not (row.text if isinstance(row, Text) else row.first and row.second):
            dropped["blank"] += 1
        elif key in seen:
            dropped["duplicate"] += 1
        else:
            seen.add(key)
            kept.append(row)
            if len(kept) == limit:
                break
    counts = IngestCounts(
        read=len(kept) + dropped.total(),
        kept=len(kept),
        duplicate=dropped["duplicate"],
        blank=dropped["blank"],
        broken=dropped["broken"],
        undecodable=dropped["undecodable"],
    )
    return KeptRows(tuple(kept), counts, first_broken)
