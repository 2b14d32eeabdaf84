"""Which rows of a store are new since it was last looked at, told by hashes of each row's id, vector and text.

Rows go by id; without ids, by what they hold, equal ones by their number among those. A file in ``HOME/indexes`` has
what is kept between two looks: no text and no vector, and the ids of up to 200 000 rows, of which those that are gone
can be named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from pydantic import BaseModel, ValidationError

from embaudit.questions.vectors.profile import GOLDEN, hash_rows, hash_values, mixed
from embaudit.stores.copies import changed
from embaudit.stores.store import RowBatch, Store
from embaudit.system.files import replace_atomically
from embaudit.words.errors import StorageError, one_line
from embaudit.words.sentences import cut, visible

FOLDER = "indexes"
# Another form of the file, or other hashes, are a first look again.
VERSION = 2
# Groups are told in 16 bits; so many looks that found something are one problem and not as many.
MOST_GROUPS = 60_000
OLD, ADDED, OVERWRITTEN = 0, 1, 2
# How rows are called where a store has no ids.
ROW_NUMBER = "row number"
# Rows whose ids are kept, so that it can be said which are gone, and characters of each.
MOST_IDS, MOST_ID = 200_000, 200


class KnownRow(BaseModel):
    """A row with which something is wrong.

    Attributes:
        row: its hash, as in ``RowMarks.rows``.
        id: as a person knows it.
    """

    row: int
    id: str


class OpenGroup(BaseModel):
    """The rows of one look in which something was found, as long as they are there and as they were.

    Attributes:
        number: of its rows in ``SeenRows.groups``; 0 for all rows that are in no other group.
        night: when they were found.
        came: how many rows of that look there were.
        since: of what was found, when that was first.
        said: of what was found, a sentence.
        bad: of what is told row by row, the rows.
        is_whole: whether every row was encoded, so that nothing is wrong with any row but with these.
        kind: what they were held against: a checkpoint, an endpoint …
        accepted: what of it was accepted.
        levels: of the old rows, what was accepted, up to which share.
    """

    number: int = 0
    night: datetime
    came: int = 0
    since: dict[str, datetime] = {}
    said: dict[str, str] = {}
    bad: dict[str, list[KnownRow]] = {}
    is_whole: bool = False
    kind: str = "function"
    accepted: list[str] = []
    levels: dict[str, float] = {}

    @property
    def open(self) -> list[str]:
        return [name for name in self.said if name not in self.accepted]


class SeenIndex(BaseModel):
    """What was known when an index was last looked at.

    Attributes:
        asked: when that was.
        looks: how many there were.
        judged_by: the function.
        old_share: upper end of the share of old rows that are not the function's.
        groups: the old rows first.
    """

    version: int = VERSION
    asked: datetime
    looks: int
    judged_by: str
    old_share: float = 0.0
    groups: list[OpenGroup]


def read_seen(path: Path) -> tuple[SeenIndex, SeenRows] | None:
    """What the last look left; None if there was none, or its file has another form.

    Raises:
        StorageError: if the file is damaged.
    """
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            known = json.loads(bytes(arrays["known"]))
            if known.get("version") != VERSION:
                return None
            ids = json.loads(bytes(arrays["ids"]))
            return SeenIndex.model_validate(known), SeenRows(arrays["rows"], arrays["groups"], arrays["names"], ids)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, ValidationError) as error:
        raise StorageError(
            f"{path}, which says what was in the index the last time, cannot be read: {one_line(error)}",
            kept="The index was not looked at; answers that were kept have what was found.",
            next_step=f"Begin anew: rm {path}",
        ) from error


def keep_seen(path: Path, seen: SeenIndex, rows: SeenRows) -> None:
    """Keep it for the next look.

    Raises:
        StorageError: if it cannot be written; what was kept before is then unchanged.
    """
    try:
        with replace_atomically(path) as partial, partial.open("wb") as file:
            told = (seen.model_dump_json(), json.dumps(rows.ids))
            known, ids = (np.frombuffer(one.encode(), np.uint8) for one in told)
            np.savez(file, rows=rows.rows, groups=rows.groups, names=rows.names, known=known, ids=ids)
    except OSError as error:
        raise StorageError(
            f"{path}, which says what is in the index, cannot be written: {one_line(error)}",
            kept="That of the time before is unchanged: the next look tells new rows by it.",
            next_step="Free some space there.",
        ) from error


@dataclass(frozen=True)
class RowMarks:
    """What a store holds now, in its order.

    Attributes:
        names: (n,) uint64 by which a row is known again: of its id.
        contents: (n,) uint64 of its vector and its text.
        dimensions: (n,) numbers of its vector; 0 if it has none.
        ids: (n,) as a person knows it; empty if there are none, or too many.
    """

    names: np.ndarray
    contents: np.ndarray
    dimensions: np.ndarray
    ids: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def rows(self) -> np.ndarray:
        """(n,) uint64 of name and content together."""
        return mixed(mixed(self.names) + self.contents)

    @property
    def copies(self) -> np.ndarray:
        """(n,) whether another row has the same vector and the same text."""
        _, inverse, counts = np.unique(self.contents, return_inverse=True, return_counts=True)
        return np.asarray((counts[inverse] > 1) & (self.dimensions > 0))

    @property
    def usual_dimension(self) -> int:
        """The most frequent of the dimensions; 0 if no row has a vector."""
        values, counts = np.unique(self.dimensions[self.dimensions > 0], return_counts=True)
        return int(values[np.argmax(counts)]) if len(values) else 0


@dataclass(frozen=True)
class SeenRows:
    """What a store held when it was last looked at.

    Attributes:
        rows: (n,) uint64 of ``RowMarks.rows``, sorted.
        groups: (n,) uint16 of each: in which night's rows it is, if those are open; else 0.
        names: (m,) distinct names, sorted.
        ids: (m,) of these names, if they are kept.
    """

    rows: np.ndarray
    groups: np.ndarray
    names: np.ndarray
    ids: Sequence[str] = ()

    @classmethod
    def of(cls, marks: RowMarks, groups: np.ndarray) -> SeenRows:
        rows = marks.rows
        order = np.argsort(rows, kind="stable")
        names, first = np.unique(marks.names, return_index=True)
        ids = [marks.ids[place] for place in first.tolist()] if marks.ids else []
        return cls(rows[order], groups[order].astype(np.uint16), names, ids)


@dataclass(frozen=True)
class WhatIsNew:
    """How each row came to be there.

    Attributes:
        came: (n,) old, added, or overwritten: an id that was there, with another vector or text.
        groups: (n,) as they were of the old ones.
        removed: how many ids are gone.
        removed_ids: which, if they are known.
    """

    came: np.ndarray
    groups: np.ndarray
    removed: int = 0
    removed_ids: Sequence[str] = ()

    @property
    def added(self) -> int:
        return int((self.came == ADDED).sum())

    @property
    def overwritten(self) -> int:
        return int((self.came == OVERWRITTEN).sum())


def repeated(marks: RowMarks, came: np.ndarray) -> int:
    """How many added rows have the vector and the text of a row that was there before."""
    added = marks.contents[(came == ADDED) & (marks.dimensions > 0)]
    return int(np.isin(added, marks.contents[came == OLD]).sum())


def marks_of(store: Store) -> RowMarks:
    """Read a store once."""
    parts = []
    ids: list[str] = []
    for batch in store.batches():
        parts.append((_names(batch), *_contents(batch)))
        if batch.ids is not None and len(ids) <= MOST_IDS:
            ids += [cut(visible(one), MOST_ID) for one in batch.ids]
    if not parts:
        nothing = np.empty(0, np.uint64)
        return RowMarks(nothing, nothing, np.empty(0, np.int32))
    names, contents, dimensions = (np.concatenate(column) for column in zip(*parts, strict=True))
    nameless = np.flatnonzero(names == 0)
    names[nameless] = _by_content(contents[nameless])
    return RowMarks(names, contents, dimensions, ids if len(ids) == len(names) else ())


def what_is_new(now: RowMarks, seen: SeenRows | None) -> WhatIsNew:
    """Rows that were not there, or held something else; in a first look all are old."""
    nothing = np.zeros(len(now), np.uint16)
    if seen is None:
        return WhatIsNew(np.zeros(len(now), np.uint8), nothing)
    rows = now.rows
    is_old, places = _found(rows, seen.rows)
    is_known, _ = _found(now.names, seen.names)
    came = np.where(is_old, OLD, np.where(is_known, OVERWRITTEN, ADDED)).astype(np.uint8)
    groups = nothing if not len(seen.groups) else np.where(is_old, seen.groups[places], 0).astype(np.uint16)
    still, _ = _found(seen.names, np.unique(now.names))
    gone = sorted(seen.ids[place] for place in np.flatnonzero(~still).tolist()) if seen.ids else []
    return WhatIsNew(came, groups, int((~still).sum()), gone)


def only(store: Store, chosen: np.ndarray, marks: RowMarks) -> Store:
    """The store with these rows alone, under their own ids.

    Raises:
        UsageError: in a pass, if rows are others than when they were marked.
    """

    def batches(fields: Sequence[str] = (), /) -> Iterator[RowBatch]:
        start = read = 0
        for batch in store.batches(fields):
            known = marks.names[batch.start : batch.start + batch.rows]
            names = _names(batch)[: len(known)]
            if ((names != 0) & (names != known)).any():
                raise changed(store.shown)
            read += len(known)
            own = np.flatnonzero(chosen[batch.start : batch.start + batch.rows])
            if len(own):
                yield _at(batch, own, start)
                start += len(own)
        if read < len(marks):
            raise changed(store.shown)

    columns = {**store.columns, "id": store.columns.get("id", ROW_NUMBER)}
    return replace(store, batches=batches, rows=int(chosen.sum()), columns=columns)


def _names(batch: RowBatch) -> np.ndarray:
    """(n,) of the ids; 0 where there is none."""
    return np.zeros(batch.rows, np.uint64) if batch.ids is None else hash_values(batch.ids, batch.rows)


def _contents(batch: RowBatch) -> tuple[np.ndarray, np.ndarray]:
    """(n,) of vectors and texts, and (n,) dimensions."""
    found, dimensions = np.zeros(batch.rows, np.uint64), np.zeros(batch.rows, np.int32)
    for dimension, (places, vectors) in batch.vectors.items():
        # A library that reads the same numbers as float64 one day has not changed them.
        numbers = vectors.astype(np.float32) if vectors.dtype.kind == "f" else vectors
        found[places] = hash_rows(numbers) + np.uint64(dimension)
        dimensions[places] = dimension
    if batch.texts is not None:
        found = mixed(found) + hash_values(batch.texts, batch.rows)
    return mixed(found + GOLDEN), dimensions


def _by_content(contents: np.ndarray) -> np.ndarray:
    """(n,) names of rows that have no id: what they hold, and which of the rows that hold it each one is."""
    order = np.argsort(contents, kind="stable")
    ordered = contents[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.empty(0, bool)
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(ordered)), 0))
    which = np.empty(len(contents), np.uint64)
    which[order] = (np.arange(len(ordered)) - starts).astype(np.uint64)
    return mixed(contents + (which + np.uint64(1)) * GOLDEN)


def _found(values: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) whether each is among sorted ones, and the place of the first of these."""
    if not len(among):
        return np.zeros(len(values), bool), np.zeros(len(values), np.int64)
    places = np.searchsorted(among, values).clip(max=len(among) - 1)
    return among[places] == values, places


def _at(batch: RowBatch, own: np.ndarray, start: int) -> RowBatch:
    """The rows of a batch at these places, as a batch that begins at a number."""
    place_of = np.full(batch.rows, -1)
    place_of[own] = np.arange(len(own))
    vectors = {}
    for dimension, (places, numbers) in batch.vectors.items():
        kept = np.flatnonzero(place_of[places] >= 0)
        if len(kept):
            vectors[dimension] = (place_of[places[kept]], numbers[kept])
    places = own.tolist()
    ids = [None if batch.ids is None else batch.ids[place] for place in places]
    return RowBatch(
        start,
        len(own),
        vectors,
        None if batch.texts is None else [batch.texts[place] for place in places],
        [f"row {batch.start + place + 1:,}" if one is None else one for place, one in zip(places, ids, strict=True)],
        {name: [values[place] for place in places] for name, values in batch.fields.items()},
    )
