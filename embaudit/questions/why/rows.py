"""The rows that should be found: one pass over a store finds them, and the texts of all, by which words are searched.

Of rows that are not there, it is looked everywhere before that is said: in other fields, parts and files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from embaudit.questions.vectors.profile import Profile, Progress, profile_of
from embaudit.stores.opened import open_store
from embaudit.stores.place import NoSuchPart, ReadOptions
from embaudit.stores.search import Where
from embaudit.stores.store import RowBatch, Store
from embaudit.stores.texts import ids_by_row
from embaudit.words.errors import EmbauditError, UsageError

# Characters of texts that are kept; of a store with more, words are not searched.
MOST_CHARACTERS = 2_000_000_000


@dataclass(frozen=True)
class ExpectedRow:
    """A row that should be found.

    Attributes:
        number: of the row, from 0.
        vector: (D,) as stored; None if it has none.
        passes: whether the filter keeps it.
        where: the filter with the row's own values: what is written alike may be a number or a text.
    """

    number: int
    id: str | None
    text: str | None
    vector: np.ndarray | None
    passes: bool = True
    where: Where = ()


@dataclass(frozen=True)
class StoreScan:
    """What one pass over a store shows.

    Attributes:
        rows: by what was expected, the rows that have it as their id, or else as their text.
        texts, ids: of all rows, by number; None if the store has none, or too many.
        passing: numbers of the rows that the filter keeps; None without one.
        kinds: by field of the filter, the types that its value has in these rows, with a value of each.
    """

    profile: Profile
    rows: dict[str, tuple[ExpectedRow, ...]]
    texts: list[str] | None
    ids: list[str] | None
    passing: np.ndarray | None
    kinds: Mapping[str, Mapping[type, object]] = field(default_factory=dict)

    def holding(self, text: str) -> list[int]:
        """Numbers of rows whose text holds another one, or is held by it."""
        own = " ".join(text.split())
        found = []
        for number, one in enumerate(self.texts or ()):
            other = " ".join(one.split())
            if len(other) >= SHORTEST and (other in own or (len(own) >= SHORTEST and own in other)):
                found.append(number)
        return found


# Characters of a text that is looked for in others.
SHORTEST = 30


def gather(
    store: Store,
    expected: Sequence[str],
    where: Where,
    seed: int,
    progress: Progress = lambda rows: None,
    numbers: Mapping[str, int] | None = None,
) -> StoreScan:
    """Read a store once.

    Args:
        expected: ids, or texts.
        where: the filter; all rows are read, whatever it keeps.
        numbers: of rows by ids that the store has not: those of a file of its texts.
    """
    wanted = dict.fromkeys(expected)
    stripped = {" ".join(one.split()): one for one in wanted}
    # Most texts are told by their first word.
    first = {one.partition(" ")[0] for one in stripped}
    by_id: dict[str, list[ExpectedRow]] = {}
    by_text: dict[str, list[ExpectedRow]] = {}
    by_number: dict[str, list[ExpectedRow]] = {}
    named = {number: one for one, number in (numbers or {}).items()}
    texts: list[str] = []
    ids: list[str] = []
    characters = 0
    names = [name for name, _ in where]
    passing: list[int] = []
    kinds: dict[str, dict[type, object]] = {name: {} for name in names}

    def observed(fields: Sequence[str] = ()) -> Iterator[RowBatch]:
        nonlocal characters
        for batch in store.batches([*fields, *names]):
            for place in range(batch.rows):
                own = None if batch.ids is None else str(batch.ids[place])
                text = None if batch.texts is None else batch.texts[place]
                if where and _passes(batch, place, where):
                    passing.append(batch.start + place)
                    for name in names:
                        kinds[name].setdefault(type(batch.fields[name][place]), batch.fields[name][place])
                if batch.start + place in named:
                    by_number[named[batch.start + place]] = [_row(batch, place, where)]
                if own in wanted:
                    by_id.setdefault(str(own), []).append(_row(batch, place, where))
                elif text and _first_word(text) in first and (same := stripped.get(" ".join(text.split()))) is not None:
                    by_text.setdefault(same, []).append(_row(batch, place, where))
            if batch.ids is not None:
                ids.extend(map(str, batch.ids))
            if batch.texts is not None and characters <= MOST_CHARACTERS:
                texts.extend(text or "" for text in batch.texts)
                characters += sum(len(text or "") for text in batch.texts)
            yield batch

    profile = profile_of(replace(store, batches=observed), seed, progress)
    has_texts = store.has_texts and characters <= MOST_CHARACTERS
    rows = {one: tuple(by_id.get(one) or by_text.get(one) or by_number.get(one) or ()) for one in wanted}
    kept = np.array(passing, np.int64) if where else None
    return StoreScan(profile, rows, texts if has_texts else None, ids or None, kept, kinds)


def _first_word(text: str) -> str:
    return next(iter(text.split(None, 1)), "")


def _row(batch: RowBatch, place: int, where: Where) -> ExpectedRow:
    vector = None
    for places, vectors in batch.vectors.values():
        at = np.flatnonzero(places == place)
        if len(at):
            vector = np.asarray(vectors[at[0]])
    return ExpectedRow(
        batch.start + place,
        None if batch.ids is None else str(batch.ids[place]),
        None if batch.texts is None else batch.texts[place],
        vector,
        _passes(batch, place, where),
        tuple((name, batch.fields[name][place]) for name, _ in where),
    )


def _passes(batch: RowBatch, place: int, where: Where) -> bool:
    """Whether the filter keeps a row: what is written alike is alike."""
    return all(str(batch.fields[name][place]) == str(value) for name, value in where)


def fields_of(store: Store, numbers: Collection[int]) -> dict[int, dict[str, str]]:
    """What else these rows hold, by row number: by field, as text."""
    if not numbers or not store.fields:
        return {}
    found: dict[int, dict[str, str]] = {}
    for batch in store.batches(store.fields):
        for number in numbers:
            if batch.start <= number < batch.start + batch.rows:
                values = {name: some[number - batch.start] for name, some in batch.fields.items()}
                found[number] = {name: str(one) for name, one in values.items() if one is not None}
    return found


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
