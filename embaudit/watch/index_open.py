"""What was found in an index and is not mended: the rows of red nights, and the old ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import numpy as np

from embaudit.watch.index_look import FOREIGN, MOST_KNOWN, IndexInspection, IndexNow, said_by_row
from embaudit.watch.index_rows import OLD, WhatIsNew
from embaudit.watch.index_seen import MOST_GROUPS, KnownRow, OpenGroup

# Of what is accepted among old rows, other than a share of them.
ANY_SHARE = 1.0


class OpenRows:
    """The groups of rows in which something was found, from one night to the next.

    Args:
        groups: as the last look left them, the old rows first.
        old_share: upper end of the share of old rows that were not the function's then.
        accepted: (key of the check that found it first, name of the finding) of what somebody accepted.

    Attributes:
        groups: as this look leaves them.
    """

    def __init__(self, groups: Sequence[OpenGroup], old_share: float, accepted: Collection[tuple[str, str]]) -> None:
        self.groups = [_accepted(group, old_share, accepted) for group in groups]

    @classmethod
    def anew(cls, now: datetime) -> OpenRows:
        """Nothing was found before."""
        return cls([OpenGroup(night=now)], 0.0, ())

    @property
    def problems(self) -> list[dict[str, str]]:
        """What is open, with the check that found it first."""
        return [
            {"key": group.keys[name], "name": name, "night": f"{group.night:%Y-%m-%d}", "said": group.said[name]}
            for group in reversed(self.groups)
            for name in group.open
        ]

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows of what is open, as far as they are known; of the last night first."""
        return [
            {"id": row.id, "night": f"{group.night:%Y-%m-%d}", "name": name}
            for group in reversed(self.groups)
            for name in group.open
            for row in group.bad.get(name, [])[:MOST_KNOWN]
        ]

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
        """Judge the rows of earlier red nights; returns (n,) in which night's rows each row still is.

        They are as they were. If all of them were encoded then, what is wrong is known.
        """
        groups, kept, hashes = new.groups.copy(), [self.groups[0]], now.marks.rows
        for group in self.groups[1:]:
            chosen = (new.came == OLD) & (new.groups == group.number)
            if not chosen.any():
                continue
            if group.is_whole:
                _judge(group, None, hashes, "")
            elif group.open:
                what = f"the {int(chosen.sum()):,} rows of {group.night:%Y-%m-%d} that are as they were"
                _judge(group, now.look(chosen, what), hashes, next(iter(group.keys.values())))
            if group.said:
                kept.append(group)
            else:
                groups[chosen] = 0
        self.groups = kept
        return groups

    def judge_old(self, looked: IndexInspection | None, hashes: np.ndarray, key: str, now: datetime) -> None:
        """What was found in the rows that are in no night's group."""
        old = self.groups[0]
        was_open = bool(old.said)
        if looked is None:
            old.said, old.bad = {}, {}
            return
        _judge(old, looked, hashes, key)
        for name, level in old.levels.items():
            is_within = name != FOREIGN or looked.share is None or looked.share[1] <= level
            if name in old.said and is_within:
                del old.said[name]
        old.bad = {name: rows for name, rows in old.bad.items() if name in old.said}
        if not was_open:
            old.night, old.came = now, looked.rows
        old.keys = {name: old.keys[name] for name in old.said}

    def add(self, came: IndexInspection, is_new: np.ndarray, groups: np.ndarray, key: str, now: datetime) -> np.ndarray:
        """Tonight's rows, if something was found in them; returns (n,) in which night's rows each row is."""
        if not came.said:
            return groups
        number = next(n for n in range(1, MOST_GROUPS) if n not in {group.number for group in self.groups})
        keys = dict.fromkeys(came.said, key)
        group = OpenGroup(number=number, night=now, came=came.rows, keys=keys, said=dict(came.said), bad=dict(came.bad))
        self.groups.append(group.model_copy(update={"is_whole": came.is_whole, "kind": came.kind}))
        return np.where(is_new, number, groups).astype(np.uint16)


def _judge(group: OpenGroup, looked: IndexInspection | None, hashes: np.ndarray, key: str) -> None:
    """What is still wrong with a group: what was found tonight, and the rows that are known and unchanged.

    Args:
        looked: None if nothing can be wrong but what is known.
        key: of what was not found before.
    """
    said, bad, kind = ({}, {}, group.kind) if looked is None else (dict(looked.said), dict(looked.bad), looked.kind)
    what = f"the {group.came:,} rows of {group.night:%Y-%m-%d}"
    for name, known in group.bad.items():
        found = bad.get(name, [])
        still = _there(known, hashes, {row.row for row in found})
        if still:
            bad[name] = [*found, *still]
            said.setdefault(name, said_by_row(name, still, what, kind=kind))
    group.keys |= {name: key for name in said if name not in group.keys}
    group.said, group.bad, group.kind = said, bad, kind


def _there(known: Sequence[KnownRow], hashes: np.ndarray, found: Collection[int]) -> list[KnownRow]:
    """Rows that are in the index as they were, and were not found again."""
    is_there = np.isin(np.array([row.row for row in known], np.uint64), hashes)
    return [row for row, one in zip(known, is_there, strict=True) if one and row.row not in found]


def _accepted(group: OpenGroup, old_share: float, accepted: Collection[tuple[str, str]]) -> OpenGroup:
    """The group with what was accepted since."""
    names = [name for name in group.open if (group.keys[name], name) in accepted]
    if not names:
        return group.model_copy(deep=True)
    if group.number:
        return group.model_copy(deep=True, update={"accepted": [*group.accepted, *names]})
    levels = {name: old_share if name == FOREIGN else ANY_SHARE for name in names}
    said = {name: one for name, one in group.said.items() if name not in names}
    keys = {name: one for name, one in group.keys.items() if name not in names}
    bad = {name: rows for name, rows in group.bad.items() if name not in names}
    update = {"levels": {**group.levels, **levels}, "said": said, "keys": keys, "bad": bad}
    return group.model_copy(deep=True, update=update)
