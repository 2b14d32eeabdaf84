"""What earlier watches saw: the revisions of each source, their outcome and settings.

What becomes of an index when a watched source has a new revision.

Where the revision before can still be loaded, the two are compared as ``embaudit switch`` does. A folder that was
written over is gone; but its audit left a passport, and the same texts' vectors by both say whether they may be in one
index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.measures.quality.material import sample_material
from embaudit.questions.parity.compare import compare_kind, is_apart, is_rounding
from embaudit.questions.passport.passport import Passport, read_passport
from embaudit.system.settings import warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.tables.audits import DONE, IndexVerdict, Status

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


OTHER_VECTORS: Literal["other vectors"] = "other vectors"


class IndexChange(BaseModel):
    """A row of the table ``index_change``, without the audits.

    Attributes:
        compared: on ``texts`` by both checkpoints, or on the ``canaries`` of both passports.
        median_cosine: of the same text's two vectors; None if they have other dimensions.
    """

    model_config = ConfigDict(frozen=True)

    compared: Literal["texts", "canaries"]
    verdict: IndexVerdict
    line: str
    median_cosine: float | None


def passport_of(reports: Path, checkpoint_id: str) -> Passport | None:
    """The passport that an audit left; None if there is none."""
    path = reports / f"{checkpoint_id}.passport.json"
    return read_passport(path) if path.is_file() else None


def compare_passports(old: Passport, new: Passport) -> IndexChange | None:
    """What the vectors of the texts in both passports say; None if they have none in common."""
    if old.reading.dimension != new.reading.dimension:
        line = f"Rebuild: vectors of {new.reading.dimension} dimensions, where the index has {old.reading.dimension}."
        return IndexChange(compared="canaries", verdict="rebuild", line=line, median_cosine=None)
    after = {one.text: one for one in new.canaries}
    kinds = []
    for kind, some in old.kinds.items():
        both = [one for one in some if one.text in after]
        if both:
            mine, theirs = (
                np.array([one.numbers for one in rows]) for rows in (both, [after[one.text] for one in both])
            )
            kinds.append(compare_kind(kind, [one.text for one in both], mine, theirs, {}))
    if not kinds:
        return None
    texts = [text for kind in kinds for text in kind.texts]
    distances = np.concatenate([kind.distances for kind in kinds])
    median, worst = 1 - float(np.median(distances)), float(distances.max())
    is_same = not any(is_apart(kind) for kind in kinds)
    # As `embaudit switch` says of the texts themselves.
    if is_same or is_rounding(kinds):
        rounded = "" if is_same else ", no more than half precision rounds"
        line = f"Same index: {len(texts)} texts get the same vectors (1 − cosine at most {worst:.1e}{rounded})."
        return IndexChange(compared="canaries", verdict="same index", line=line, median_cosine=median)
    line = (
        f"Other vectors than those in the index: the median cosine of {len(texts)} texts by both revisions is "
        f"{median:.2f}. Keep them apart; what a bridge would hold, and what a cut-off becomes: embaudit switch OLD NEW."
    )
    return IndexChange(compared="canaries", verdict=OTHER_VECTORS, line=line, median_cosine=median)


def switch_revisions(old: str, new: str, options: LoadOptions) -> IndexChange:
    """What ``embaudit switch`` says on the embedded sample.

    Raises:
        EmbauditError: if one of them cannot be loaded, or a vector is not finite.
    """
    # It imports torch.
    from embaudit.embedders.checkpoint import CheckpointFunction
    from embaudit.questions.switch.encode import SearchTexts
    from embaudit.questions.switch.switch import switch_functions

    material = sample_material()
    report = switch_functions(
        CheckpointFunction(load_checkpoint(old, options), old),
        CheckpointFunction(load_checkpoint(new, options), new),
        material.pairs,
        [SearchTexts(one) for one in material.collections],
    )
    median = None if report.same_text is None else report.same_text.median.value
    return IndexChange(compared="texts", verdict=report.verdict, line=report.line, median_cosine=median)
