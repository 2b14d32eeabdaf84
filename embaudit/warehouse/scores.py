"""Downstream scores in the warehouse: written in one transaction, replaced by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from embaudit.corpora.scores import Score
from embaudit.system.address import Warehouse
from embaudit.warehouse.publish import run_write
from embaudit.warehouse.write import replace_rows, transaction
from embaudit.words.errors import StorageError, WarehouseError

KEYS = ("checkpoint", "revision", "task", "split", "subset")
COLUMNS = (*KEYS, "score", "metric", "origin")


@dataclass(frozen=True)
class ImportedScores:
    """Numbers of imported scores: new, replaced, and unchanged."""

    new: int
    replaced: int
    same: int


def import_scores(warehouse: Warehouse | str, wait_seconds: float, scores: Sequence[Score]) -> ImportedScores:
    """Write the scores, all or nothing; a score of the same key is replaced.

    Raises:
        WarehouseError, StorageError: as ``open_writer``.
    """
    now = datetime.now(UTC)
    rows = [{**{name: getattr(one, name) for name in COLUMNS}, "imported": now} for one in scores]

    def write(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, ...], float]:
        with transaction(connection):
            found = connection.execute(f"SELECT {', '.join(KEYS)}, score FROM downstream_score").fetchall()
            replace_rows(connection, "downstream_score", rows)
        return {row[:-1]: row[-1] for row in found}

    try:
        known = run_write(warehouse, wait_seconds, write)
    except (WarehouseError, StorageError) as error:
        raise type(error)(error.happened, kept="No scores were imported.", next_step=error.next_step) from error
    same = sum(known.get(one.key) == one.score for one in scores)
    replaced = sum(one.key in known for one in scores) - same
    return ImportedScores(len(scores) - same - replaced, replaced, same)
