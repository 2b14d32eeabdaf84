"""What was found in an index and is not mended: the rows of looks that found something, and the old ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np

from embaudit.questions.report import wrong_row
from embaudit.questions.vectors.since.inspected import FOREIGN, MOST_KNOWN, IndexInspection, IndexNow, said_by_row
from embaudit.questions.vectors.since.rows import MOST_GROUPS, OLD, OpenGroup, WhatIsNew

# Of what is accepted among old rows, other than a share of them.
ANY_SHARE = 1.0


class OpenRows:
    """The groups of rows in which something was found, from one look to the next.

    Args:
        groups: as the last look left them, the old rows first.
        old_share: upper end of the share of old rows that were not the function's then.
        now: when this look is.

    Attributes:
        groups: as this look leaves them.
    """

    def __init__(self, groups: Sequence[OpenGroup], old_share: float, now: datetime) -> None:
        self.groups = [group.model_copy(deep=True) for group in groups]
        self._old_share, self._now = old_share, now
        self._old: IndexInspection | None = None

    @classmethod
    def anew(cls, now: datetime) -> OpenRows:
        """Nothing was found before."""
        return cls([OpenGroup(night=now)], 0.0, now)

    @property
    def open(self) -> Iterator[tuple[OpenGroup, str]]:
        """What is open, of the last look first: a group of rows, and the name of what is wrong with them."""
        return ((group, name) for group in reversed(self.groups) for name in group.open)

    @property
    def accepted(self) -> list[str]:
        """What somebody accepted of rows that are still there, in sentences."""
        levels = [
            f"Accepted of the old rows: {name}{'' if level >= ANY_SHARE else f', up to {level:.1%}'}."
            for name, level in self.groups[0].levels.items()
        ]
        return levels + [
            f"Accepted: {group.said[name]}"
            for group in self.groups[1:]
            for name in group.accepted
            if name in group.said
        ]

    def look_again(self, now: IndexNow, new: WhatIsNew) -> np.ndarray:
        """Judge the rows of earlier looks that found something; returns (n,) in which look's rows each row still is.

        They are as they were. If all of them were encoded then, what is wrong is known.
        """
        groups, kept, hashes = new.groups.copy(), [self.groups[0]], now.marks.rows
        for group in self.groups[1:]:
            chosen = (new.came == OLD) & (new.groups == group.number)
            if not chosen.any():
                continue
            if group.is_whole:
                self._judge(group, None, hashes)
            elif group.open:
                what = f"the {int(chosen.sum()):,} rows of {group.night:%Y-%m-%d} that are as they were"
                self._judge(group, now.look(chosen, what), hashes)
            if group.said:
                kept.append(group)
            else:
                groups[chosen] = 0
        self.groups = kept
        return groups

    def judge_old(self, looked: IndexInspection | None, hashes: np.ndarray) -> None:
        """What was found in the rows that are in no look's group."""
        old, self._old = self.groups[0], looked
        was_open = bool(old.said)
        if looked is None:
            old.said, old.bad = {}, {}
            return
        self._judge(old, looked, hashes)
        self._leave_out_accepted()
        if not was_open:
            old.night, old.came = self._now, looked.rows

    def add(self, came: IndexInspection, is_new: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The rows that came, if something was found in them; returns (n,) in which look's rows each row is."""
        if not came.said:
            return groups
        number = next(n for n in range(1, MOST_GROUPS) if n not in {group.number for group in self.groups})
        self.groups.append(
            OpenGroup(
                number=number,
                night=self._now,
                came=came.rows,
                since=dict.fromkeys(came.said, self._now),
                said=dict(came.said),
                bad=dict(came.bad),
                is_whole=came.is_whole,
                kind=came.kind,
            )
        )
        return np.where(is_new, number, groups).astype(np.uint16)

    def accept(self, until: datetime) -> OpenRows:
        """The same, of which somebody accepted all that was known then; of old rows, up to the share that was."""
        found = OpenRows(self.groups, self._old_share, self._now)
        found._old = self._old
        for group in found.groups[1:]:
            group.accepted += [name for name in group.open if group.since[name] <= until]
        old = found.groups[0]
        for name in [name for name in old.said if old.since[name] <= until]:
            old.levels[name] = self._old_share if name == FOREIGN else ANY_SHARE
            # If there are more of them, that is found now.
            old.since[name] = self._now
        found._leave_out_accepted()
        return found

    def _leave_out_accepted(self) -> None:
        """Of the old rows, what is within what somebody accepted is not said."""
        old, looked = self.groups[0], self._old
        for name, level in old.levels.items():
            share = None if looked is None else looked.share
            if name in old.said and (name != FOREIGN or share is None or share[1] <= level):
                del old.said[name]
        old.bad = {name: rows for name, rows in old.bad.items() if name in old.said}
        old.since = {name: old.since[name] for name in old.said}

    def _judge(self, group: OpenGroup, looked: IndexInspection | None, hashes: np.ndarray) -> None:
        """What is still wrong with a group: what was found now, and the rows that are known and unchanged.

        Args:
            looked: None if nothing can be wrong but what is known.
        """
        said, bad, kind = ({}, {}, group.kind) if looked is None else (dict(looked.said), dict(looked.bad), looked.kind)
        what = f"the {group.came:,} rows of {group.night:%Y-%m-%d}"
        for name, known in group.bad.items():
            found = bad.get(name, [])
            is_there = np.isin(np.array([row.row for row in known], np.uint64), hashes)
            again = {row.row for row in found}
            still = [row for row, one in zip(known, is_there, strict=True) if one and row.row not in again]
            if still:
                bad[name] = [*found, *still]
                said.setdefault(name, said_by_row(name, still, what, kind=kind))
        group.since |= {name: self._now for name in said if name not in group.since}
        group.said, group.bad, group.kind = said, bad, kind


def rows_of_open(open_rows: OpenRows) -> Iterator[dict[str, object]]:
    """Rows of what is open, as far as they are known, of the last look first: rows of the table ``wrong_row``."""
    for group, name in open_rows.open:
        for row in group.bad.get(name, [])[:MOST_KNOWN]:
            yield wrong_row(row.id, name, group.since[name])
