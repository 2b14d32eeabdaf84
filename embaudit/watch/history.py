"""What earlier watches saw: the revisions of each source, their outcome and settings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from embaudit.system.address import warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.tables.watch import DONE, Status

# Used if the revision is unknown: the folder could not be read, or the hub did not answer.
NO_REVISION = ""


class WatchedRevision(BaseModel):
    """One row of the table ``watched_revision``.

    Attributes:
        source: ``owner/name``, ``owner/name@branch`` or a path, as watched.
        revision: commit of a repository, or checkpoint id of a folder.
        parameters_key: key of the settings; other settings have other rows.
        status: ``audited`` by this watch; ``unchanged``: same content as the source's previous revision; ``known``:
            this content was audited before, under another name or revision; ``running``: a worker has not finished it;
            ``failed``; ``unreachable``: the hub did not answer.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    revision: str
    parameters_key: str
    parameters: dict[str, Any]
    checkpoint_id: str | None
    status: Status
    reason: str | None
    audit_id: str | None
    first_seen: datetime
    last_seen: datetime


class History:
    """All watched revisions, with the lookups that a watch needs."""

    def __init__(self, rows: Iterable[WatchedRevision] = ()) -> None:
        self._rows = {_key(row): row for row in rows}

    def find(self, source: str, revision: str, parameters_key: str) -> WatchedRevision | None:
        return self._rows.get((source, revision, parameters_key))

    def by_content(self, checkpoint_id: str, parameters_key: str) -> WatchedRevision | None:
        """A row with an audit of this content under these settings, from any source."""
        for row in self._rows.values():
            same = (row.checkpoint_id, row.parameters_key) == (checkpoint_id, parameters_key)
            if same and row.status in DONE and row.audit_id is not None:
                return row
        return None

    def newest(self, source: str, parameters_key: str) -> WatchedRevision | None:
        """The source's newest finished revision under these settings."""
        return self._newest(self._under(source, parameters_key))

    def previous(self, source: str, parameters_key: str, checkpoint_id: str) -> WatchedRevision | None:
        """The source's newest revision with different content, to compare with."""
        return self._newest(row for row in self._under(source, parameters_key) if row.checkpoint_id != checkpoint_id)

    def unread(self) -> list[WatchedRevision]:
        """The newest revision of each source of which it could not be read."""
        newest = [self._newest(row for row in self._rows.values() if row.source == name) for name in self._names]
        return [row for row in newest if row is not None and row.status in ("failed", "gone")]

    def has_other_settings(self, source: str, parameters_key: str) -> bool:
        """Whether the source has finished revisions only under other settings."""
        keys = {row.parameters_key for row in self._of(source)}
        return bool(keys) and parameters_key not in keys

    def put(self, row: WatchedRevision) -> WatchedRevision:
        """Add or replace a row; returns it with the time it was first seen."""
        known = self._rows.get(_key(row))
        if known is not None:
            # If the clock was set back, keep the earlier time.
            row = row.model_copy(
                update={"first_seen": known.first_seen, "last_seen": max(row.last_seen, known.last_seen)}
            )
        self._rows[_key(row)] = row
        return row

    @property
    def _names(self) -> list[str]:
        return sorted({row.source for row in self._rows.values()})

    def _under(self, source: str, parameters_key: str) -> Iterable[WatchedRevision]:
        return (row for row in self._of(source) if row.parameters_key == parameters_key)

    @staticmethod
    def _newest(rows: Iterable[WatchedRevision]) -> WatchedRevision | None:
        # By last seen: a source may have returned to older content.
        return max(rows, key=lambda row: (row.last_seen, row.first_seen), default=None)

    def _of(self, source: str) -> list[WatchedRevision]:
        return [row for row in self._rows.values() if row.source == source and row.status in DONE]


def _key(row: WatchedRevision) -> tuple[str, str, str]:
    return row.source, row.revision, row.parameters_key


COLUMNS = tuple(WatchedRevision.model_fields)


def read_watched(warehouse: str) -> list[WatchedRevision]:
    """Every row of ``watched_revision``; none if there is no warehouse yet, or it lacks the table.

    Raises:
        WarehouseError: as ``open_reader``.
    """
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return []
    with open_reader(place) as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if "watched_revision" not in tables:
            return []
        rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM watched_revision ORDER BY ALL").fetchall()
    found = (dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return [WatchedRevision(**{**row, "parameters": json.loads(row["parameters"])}) for row in found]
