"""Rows that are not there: who looks everywhere before saying so, finds them in other fields, parts and files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from embaudit.stores.opened import open_store
from embaudit.stores.place import NoSuchPart, ReadOptions
from embaudit.stores.store import Store
from embaudit.stores.texts import ids_by_row
from embaudit.words.errors import EmbauditError, UsageError

NEAR_IDS = 3
# Other parts of a place that are looked into.
MOST_PARTS = 20
# Ids of so many characters may have two typos; longer expectations are texts, which have none.
LONG, LONGEST = 12, 80


@dataclass(frozen=True)
class FoundElsewhere:
    """Where something stands that no row has as its id or text.

    Attributes:
        field: of this store; empty if it is in another part.
        part: of the same place; empty if it is in this one.
        ids: of the rows that have it.
    """

    ids: tuple[str, ...]
    field: str = ""
    part: str = ""


@dataclass(frozen=True)
class OtherPlaces:
    """Where else rows are looked for: how a store was opened.

    Attributes:
        named: the place.
        asked: what of it.
    """

    named: str
    asked: ReadOptions

    def numbers(self, wanted: Collection[str]) -> dict[str, int]:
        """Of ids in a file of texts that belongs to the rows one by one, the row of each; from 0.

        The numbers that the index has for its rows are known, too, where the file's ids took their place.
        """
        file = self.asked.texts
        if file is None:
            return {}
        return {**{one: int(one) for one in wanted if one.isdecimal()}, **_numbers(file, wanted)}

    def parts_with(self, wanted: Collection[str]) -> dict[str, FoundElsewhere]:
        """By what was looked for, the other part of the place that has a row of this id."""
        found: dict[str, FoundElsewhere] = {}
        for part in self._others():
            with suppress(EmbauditError):
                store = open_store(self.named, replace(self.asked, part=part, where=(), texts=None))
                for batch in store.batches():
                    for own, text in zip(batch.ids or (), batch.texts or [None] * batch.rows, strict=False):
                        for one in (str(own), text):
                            if one in wanted:
                                found.setdefault(str(one), FoundElsewhere((str(own),), part=part))
        return found

    def _others(self) -> Sequence[str]:
        """Parts of the place, but the one that is read."""
        try:
            open_store(self.named, replace(self.asked, part="\0", where=(), texts=None))
        except NoSuchPart as error:
            return [one for one in error.parts if one != self.asked.part][:MOST_PARTS]
        except EmbauditError:
            pass
        return []


def _numbers(file: Path, wanted: Collection[str]) -> dict[str, int]:
    try:
        return {one: number for number, one in enumerate(ids_by_row(file)) if one in wanted}
    except UsageError:
        return {}


def in_fields(store: Store, wanted: Collection[str]) -> dict[str, FoundElsewhere]:
    """By what was looked for, the field of the store that has it, and the rows."""
    if not wanted or not store.fields:
        return {}
    found: dict[tuple[str, str], list[str]] = {}
    for batch in store.batches(store.fields):
        for name, values in batch.fields.items():
            for place, value in enumerate(values):
                if isinstance(value, str | int) and str(value) in wanted:
                    own = f"row {batch.start + place + 1:,}" if batch.ids is None else str(batch.ids[place])
                    found.setdefault((str(value), name), []).append(own)
    first: dict[str, FoundElsewhere] = {}
    for (one, name), ids in sorted(found.items(), key=lambda it: len(it[1])):
        first.setdefault(one, FoundElsewhere(tuple(ids), field=name))
    return first


def near_ids(expected: str, ids: Iterable[str]) -> list[str]:
    """Ids that a typo would make of it: other case, separators or leading zeros, a letter more, less or changed.

    Another number is another row.
    """
    if not 2 <= len(expected) <= LONGEST:
        return []
    plain, most = _plain(expected), 1 if len(expected) < LONG else 2
    numbers = re.findall(r"\d+", plain)
    near = []
    for one in ids:
        if abs(len(one) - len(expected)) > max(most, 3) + expected.count("0"):
            continue
        own = _plain(one)
        if own == plain or (re.findall(r"\d+", own) == numbers and _edits(own, plain, most) <= most):
            near.append(one)
            if len(near) == NEAR_IDS:
                break
    return near


def _plain(name: str) -> str:
    """Without case, separators and leading zeros."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[\W_]+", "", name).lower())


def _edits(one: str, other: str, most: int) -> int:
    """Letters that are put in, left out, changed or changed over to make one of the other; more than ``most`` if so."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, before = before, row
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
