"""What earlier watches saw: which revisions of which source, what became of them, and under which settings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from embaudit.tables.watch import DONE, Status

# Where no revision could be told: the folder could not be read, or the hub gave no answer.
NO_REVISION = ""


class WatchedRevision(BaseModel):
    """One row of the table ``watched_revision``.

    Attributes:
        source: ``owner/name``, ``owner/name@branch`` or a path, as watched.
        revision: the commit of a repository; of a folder its checkpoint id.
        parameters_key: of the settings; other settings make other rows.
        status: ``audited`` now; ``unchanged``: same content as the source's revision before; ``known``: this content
            was audited before, under another name or revision; ``running``: a worker has not finished it;
            ``failed``; ``unreachable``: the hub gave no answer.
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
    """All rows, and what a watch asks of them."""

    def __init__(self, rows: Iterable[WatchedRevision] = ()) -> None:
        self._rows = {_key(row): row for row in rows}

    def find(self, source: str, revision: str, parameters_key: str) -> WatchedRevision | None:
        return self._rows.get((source, revision, parameters_key))

    def by_content(self, checkpoint_id: str, parameters_key: str) -> WatchedRevision | None:
        """A row that has an audit of this content under these settings, whatever its source."""
        for row in self._rows.values():
            same = (row.checkpoint_id, row.parameters_key) == (checkpoint_id, parameters_key)
            if same and row.status in DONE and row.audit_id is not None:
                return row
        return None

    def newest(self, source: str, parameters_key: str) -> WatchedRevision | None:
        """The source's newest revision that was dealt with under these settings."""
        return self._newest(self._under(source, parameters_key))

    def previous(self, source: str, parameters_key: str, checkpoint_id: str) -> WatchedRevision | None:
        """The source's newest revision of another content: what a revision is compared with."""
        return self._newest(row for row in self._under(source, parameters_key) if row.checkpoint_id != checkpoint_id)

    def has_other_settings(self, source: str, parameters_key: str) -> bool:
        """Whether the source was dealt with under other settings, and never under these."""
        keys = {row.parameters_key for row in self._of(source)}
        return bool(keys) and parameters_key not in keys

    def put(self, row: WatchedRevision) -> WatchedRevision:
        """Take a row over what is known under its key; returns it with the first time it was seen."""
        known = self._rows.get(_key(row))
        if known is not None:
            # A clock that went backwards makes nothing older than it was.
            row = row.model_copy(
                update={"first_seen": known.first_seen, "last_seen": max(row.last_seen, known.last_seen)}
            )
        self._rows[_key(row)] = row
        return row

    def _under(self, source: str, parameters_key: str) -> Iterable[WatchedRevision]:
        return (row for row in self._of(source) if row.parameters_key == parameters_key)

    @staticmethod
    def _newest(rows: Iterable[WatchedRevision]) -> WatchedRevision | None:
        # A source that went back to older content came to it last, however early it was first seen.
        return max(rows, key=lambda row: (row.last_seen, row.first_seen), default=None)

    def _of(self, source: str) -> list[WatchedRevision]:
        return [row for row in self._rows.values() if row.source == source and row.status in DONE]


def _key(row: WatchedRevision) -> tuple[str, str, str]:
    return row.source, row.revision, row.parameters_key
