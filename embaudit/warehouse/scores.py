"""Downstream scores in the warehouse: written in one transaction, replaced by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from embaudit.errors import StorageError, WarehouseError
from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.transaction import transaction

if TYPE_CHECKING:
    from embaudit.scores import Score

KEYS = ("checkpoint", "revision", "task", "split", "subset")
COLUMNS = (*KEYS, "score", "metric", "origin")


@dataclass(frozen=True)
class ImportedScores:
    """What an import did: rows that are new, that replaced another score, and that were there with the same one."""

    new: int
    replaced: int
    same: int


def import_scores(warehouse: Path, wait_seconds: float, scores: Sequence[Score]) -> ImportedScores:
    """Write the scores, all or nothing; a score of the same key is replaced.

    Raises:
        WarehouseError, StorageError: as ``open_writer``.
    """
    columns = [[getattr(one, name) for one in scores] for name in COLUMNS]
    unnested = ", ".join(f"unnest(?) AS {name}" for name in COLUMNS)
    try:
        with open_writer(warehouse, wait_seconds) as connection, transaction(connection):
            known = {
                row[:-1]: row[-1]
                for row in connection.execute(f"SELECT {', '.join(KEYS)}, score FROM downstream_score").fetchall()
            }
            connection.execute(
                f"INSERT OR REPLACE INTO downstream_score BY NAME SELECT {unnested}, ?::TIMESTAMPTZ AS imported",
                [*columns, datetime.now(UTC)],
            )
    except (WarehouseError, StorageError) as error:
        # The words of an audit's end do not fit: nothing is staged here.
        raise type(error)(
            error.happened,
            kept="No score was imported.",
            next_step=error.next_step.split(": it only has to publish")[0].rstrip(".") + ".",
        ) from error
    same = sum(known.get(one.key) == one.score for one in scores)
    replaced = sum(one.key in known for one in scores) - same
    return ImportedScores(len(scores) - same - replaced, replaced, same)
