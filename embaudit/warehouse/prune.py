"""Deletes detail rows of old audits; summaries, verdicts, content and the log are kept forever."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import duckdb

from embaudit.system.address import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import upgrade_step
from embaudit.warehouse.publish import run_write
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.transaction import transaction
from embaudit.warehouse.write import replace_rows
from embaudit.words.errors import UsageError

DETAIL_TABLES = tuple(table.name for table in TABLES.values() if table.is_detail)


@dataclass(frozen=True)
class Keep:
    """Which audits keep their detail rows: those kept by at least one of the given rules.

    Attributes:
        days: keeps audits finished within this many days.
        audits: keeps this many of the newest audits of each checkpoint; unless it is 0, also older ones with the newest
            result of a measure and question.
    """

    days: int | None = None
    audits: int | None = None

    def __str__(self) -> str:
        rules = []
        if self.days is not None:
            rules.append(f"finished more than {self.days} days ago")
        if self.audits is not None:
            rules.append(f"not among the newest {self.audits} of its checkpoint")
        return " and ".join(rules)


@dataclass(frozen=True)
class PrunedTable:
    """Rows of one audit in one table that were or would be deleted."""

    audit_id: str
    table: str
    rows: int


def prune(
    warehouse: Warehouse | str, wait_seconds: float, keep: Keep, *, dry_run: bool = False, now: datetime | None = None
) -> list[PrunedTable]:
    """Delete the detail rows of audits not kept by any rule, and record it in ``pruning`` in the same transaction.

    Only published audits have rows to delete. Running an audit's command again restores its rows.

    Raises:
        UsageError: if there are no rules.
        WarehouseError, StorageError: as ``open_writer``.
    """
    if keep.days is None and keep.audits is None:
        raise UsageError(
            "It was not specified which audits keep their rows.",
            next_step="Use --keep-days 90, --keep-audits 2, or both.",
        )
    moment = now or datetime.now(UTC)
    place = warehouse_at(warehouse)
    with open_reader(place, wait_seconds) as connection:
        # An older warehouse lacks tables; the writer upgrades it first.
        found = [] if upgrade_step(connection, place) else _to_prune(connection, keep, moment)
        is_older = bool(upgrade_step(connection, place))
    if dry_run or not (found or is_older):
        return found

    def delete(connection: duckdb.DuckDBPyConnection) -> list[PrunedTable]:
        with transaction(connection):
            # Determine them again: another process may have published since.
            now_found = _to_prune(connection, keep, moment)
            for table in {one.table for one in now_found}:
                audits = [one.audit_id for one in now_found if one.table == table]
                connection.execute(f"DELETE FROM {table} WHERE list_contains(?, audit_id)", [audits])
            record = [
                {
                    "audit_id": one.audit_id,
                    "table_name": one.table,
                    "rows": one.rows,
                    "reason": str(keep),
                    "pruned": moment,
                }
                for one in now_found
            ]
            replace_rows(connection, "pruning", record)
        return now_found

    return run_write(place, wait_seconds, delete)


def _to_prune(connection: duckdb.DuckDBPyConnection, keep: Keep, moment: datetime) -> list[PrunedTable]:
    rules = []
    parameters: list[object] = []
    if keep.days is not None:
        rules.append("finished < ?")
        parameters.append(moment - timedelta(days=keep.days))
    if keep.audits is not None:
        rules.append("place > ?")
        parameters.append(keep.audits)
        if keep.audits:
            rules.append("audit_id NOT IN (SELECT audit_id FROM latest_result)")
    newest_first = "row_number() OVER (PARTITION BY checkpoint_id ORDER BY finished DESC, audit_id)"
    found = connection.execute(
        f"SELECT audit_id FROM (SELECT *, {newest_first} AS place FROM audit WHERE status = 'published') "
        f"WHERE {' AND '.join(rules)}",
        parameters,
    ).fetchall()
    audits = [audit_id for (audit_id,) in found]
    return [
        PrunedTable(audit_id, table, rows)
        for table in DETAIL_TABLES
        for audit_id, rows in connection.execute(
            f"SELECT audit_id, count(*) FROM {table} WHERE list_contains(?, audit_id) GROUP BY 1 ORDER BY 1", [audits]
        ).fetchall()
    ]
