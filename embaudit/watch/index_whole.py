"""What is wrong with an index as a whole: it is not there, has no rows, lost many of them, or cannot be read.

A job that reports success and leaves half of an index behind raises no error anywhere. The most rows that an index ever
had are what it should have, until somebody accepts that it has fewer. All that is remembered is in the warehouse: there
is no last look at what was never there.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from embaudit.stores.place import StorePlace
from embaudit.watch.watch_list import IndexEntry

GONE, EMPTY, UNREAD, ROWS_LOST = "gone", "empty", "unread", "rows_lost"
# Verdicts of an index with which something is wrong as a whole, and how it is called among its problems.
WHOLE = {"gone": GONE, "empty": EMPTY, "could not be told": UNREAD}


class LastLook(BaseModel):
    """What the warehouse knows of an index.

    Attributes:
        verdict: of the last look.
        key, night: of the first of the looks in a row that had this verdict.
        most_rows: the most rows that it had, since somebody accepted fewer; None if it was never read.
        problems: of the last look.
    """

    model_config = ConfigDict(frozen=True)

    verdict: str
    key: str
    night: datetime
    most_rows: int | None = None
    problems: list[dict[str, str]] = []

    def problem(self, name: str) -> dict[str, str] | None:
        return next((one for one in self.problems if one["name"] == name), None)


def is_gone(entry: IndexEntry) -> bool:
    """Whether nothing is where its file or folder should be; of a server, that is what it says itself."""
    place = StorePlace(entry.store)
    return not place.scheme and not Path(entry.store).exists()


def problem_of(
    verdict: str, said: str, last: LastLook | None, key: str, now: datetime, accepted: Collection[tuple[str, str]]
) -> list[dict[str, str]]:
    """The problem of an index that is gone, empty or unread; nothing if it is accepted, as long as it stays so."""
    name = WHOLE[verdict]
    first, night = (last.key, last.night) if last is not None and last.verdict == verdict else (key, now)
    return [] if (first, name) in accepted else [_problem(name, said, first, night)]


def rows_lost(
    entry: IndexEntry,
    rows: int,
    last: LastLook | None,
    key: str,
    now: datetime,
    accepted: Collection[tuple[str, str]],
) -> tuple[int, list[dict[str, str]]]:
    """The most rows that it should have, and the problem if it has too few of them.

    Args:
        rows: that it has.
    """
    most = max(rows, 0 if last is None else last.most_rows or 0)
    found = None if last is None else last.problem(ROWS_LOST)
    if found is not None and (found["key"], ROWS_LOST) in accepted:
        return rows, []
    lost = most - rows
    if not lost or lost < entry.lost * most:
        return most, []
    said = f"{lost:,} of {most:,} rows are gone ({lost / most:.1%}): it has {rows:,}."
    if found is None:
        return most, [_problem(ROWS_LOST, said, key, now)]
    return most, [{**found, "said": said}]


def _problem(name: str, said: str, key: str, night: datetime) -> dict[str, str]:
    return {"key": key, "name": name, "night": f"{night:%Y-%m-%d}", "said": said}
