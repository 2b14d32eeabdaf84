"""What is kept of an index between two looks: hashes of its rows, and what was found and is not mended.

A file in ``HOME/indexes``, complete or absent; nothing is written to the store. It holds no text and no vector; the
ids of up to 200 000 rows, so that it can be said which are gone, or else of those that are wrong.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from pydantic import BaseModel, ValidationError

from embaudit.questions.vectors.since.rows import SeenRows
from embaudit.system.files import replace_atomically
from embaudit.words.errors import StorageError, one_line

FOLDER = "indexes"
# Another form of the file, or other hashes, are a first look again.
VERSION = 2
# Groups are told in 16 bits; so many looks that found something are one problem and not as many.
MOST_GROUPS = 60_000


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
