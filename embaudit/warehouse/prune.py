"""Deletes detail rows of old audits; summaries, verdicts, content and the log are kept forever.

Reclaims space: a DuckDB file never shrinks by itself, and a lake keeps every file it ever had.

A file is copied to a new one under the writer's lock, and replaced if the new one is smaller. A lake's small files are
merged, and files not needed by recent snapshots are deleted.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from embaudit.system.files import move_into_place, temporary_folder
from embaudit.system.settings import Lake, Warehouse, warehouse_at
from embaudit.warehouse.connect import WRITER, open_reader, open_writer
from embaudit.warehouse.export import copy_tables, create_file
from embaudit.warehouse.lake import DATABASE
from embaudit.warehouse.migrate import upgrade_step
from embaudit.warehouse.publish import run_write
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import replace_rows, transaction
from embaudit.words.errors import StorageError, UsageError

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


# Rewriting a file to save less is not worth it.
MIN_SHARE_FREED = 0.1
# A process that has just opened the old file does not get its lock, retries, and opens the new one.
SETTLING_SECONDS = 1.0
# Readers of a lake use a snapshot: keep the files of the last day's snapshots.
SNAPSHOT_DAYS = 1


@dataclass(frozen=True)
class VacuumResult:
    """Size on disk before and after in bytes, and what was done."""

    before: int
    after: int
    done: str

    @property
    def freed(self) -> int:
        return self.before - self.after


def vacuum(warehouse: Warehouse | str, wait_seconds: float, *, snapshot_days: float = SNAPSHOT_DAYS) -> VacuumResult:
    """Reclaim the space of deleted rows.

    Raises:
        WarehouseError, StorageError: as ``open_writer``; the warehouse is then unchanged.
    """
    place = warehouse_at(warehouse)
    # Opening it for writing would create a missing warehouse.
    with open_reader(place, wait_seconds):
        pass
    if isinstance(place, Lake):
        return _vacuum_lake(place, wait_seconds, snapshot_days)
    return _rewrite_file(place, wait_seconds)


def _rewrite_file(path: Path, wait_seconds: float) -> VacuumResult:
    # Keep a link to the file.
    path = path.resolve()
    with open_writer(path, wait_seconds) as connection:
        connection.execute("FORCE CHECKPOINT")
        before = path.stat().st_size
        if shutil.disk_usage(path.parent).free < before:
            raise StorageError(
                f"The warehouse {path} cannot be rewritten: there is no space for another {before / 1024**2:.0f} MiB.",
                kept="The warehouse is unchanged.",
                next_step="Free some space and run the same command again.",
            )
        with temporary_folder(path) as folder:
            fresh = folder / path.name
            create_file(fresh, WRITER)
            copy_tables(connection, fresh)
            after = fresh.stat().st_size
            if after > before * (1 - MIN_SHARE_FREED):
                return VacuumResult(before, before, "nothing to gain: a new file would be just as large")
            _put_in_place(connection, fresh, path)
    return VacuumResult(before, after, "rewritten")


def _put_in_place(connection: duckdb.DuckDBPyConnection, fresh: Path, path: Path) -> None:
    """Replace the file while this connection holds its lock, so that nobody can write to the old one."""
    if path.with_name(f"{path.name}.wal").exists():
        # DuckDB would apply the old file's log to the new file.
        connection.execute("FORCE CHECKPOINT")
    move_into_place(fresh, path, mode=path.stat().st_mode & 0o777)
    time.sleep(SETTLING_SECONDS)


def _vacuum_lake(lake: Lake, wait_seconds: float, snapshot_days: float) -> VacuumResult:
    before = _bytes_below(lake.data_path)
    minutes = round(snapshot_days * 24 * 60)
    older = f"older_than => now() - INTERVAL {minutes} MINUTE"
    with open_writer(lake, wait_seconds) as connection:
        connection.execute(f"CALL ducklake_flush_inlined_data('{DATABASE}')")
        connection.execute(f"CALL ducklake_expire_snapshots('{DATABASE}', {older})")
        connection.execute(f"CALL ducklake_rewrite_data_files('{DATABASE}')")
        connection.execute(f"CALL ducklake_merge_adjacent_files('{DATABASE}')")
        connection.execute(f"CALL ducklake_cleanup_old_files('{DATABASE}', {older})")
        # Files that a killed writer never committed.
        connection.execute(f"CALL ducklake_delete_orphaned_files('{DATABASE}', {older})")
    after = _bytes_below(lake.data_path)
    return VacuumResult(
        before, after, f"files merged; files not needed by snapshots of the last {snapshot_days:g} days deleted"
    )


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))
