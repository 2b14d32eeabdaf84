"""Publishing an audit: the log in a transaction of its own, the tables in one more, all or nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.errors import StorageError, WarehouseError
from embaudit.warehouse.connect import explain, open_writer
from embaudit.warehouse.stage import reading
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.transaction import transaction

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class AuditRecord:
    """One audit's row in the log."""

    audit_id: str
    checkpoint_id: str
    profile: str
    settings: dict[str, Any]
    seed: int
    device: str
    dtype: str
    embaudit_version: str
    libraries: dict[str, str]
    started: datetime
    finished: datetime | None
    seconds: float | None
    status: str
    reason: str | None = None


@dataclass(frozen=True)
class MeasureRun:
    """One measure in an audit."""

    measure: str
    measure_key: str
    version: int
    settings: dict[str, Any]
    started: datetime | None
    seconds: float | None
    encodes: int | None
    status: str


@dataclass(frozen=True)
class ExpectationRow:
    """The outcome of one expectation on one staged file (or on one table's files together)."""

    table_name: str
    shard: int
    expectation: str
    column_name: str
    kwargs: dict[str, Any]
    severity: str
    success: bool
    raised_exception: bool
    observed: str | None = None
    unexpected_count: int | None = None
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def blocks(self) -> bool:
        return not self.success and self.severity == "critical"


@dataclass(frozen=True)
class StagedTable:
    """The staged files of one table, shards in order."""

    table: str
    paths: tuple[str, ...]


def publish(
    warehouse: Path,
    wait_seconds: float,
    audit: AuditRecord,
    runs: Sequence[MeasureRun],
    expectations: Sequence[ExpectationRow],
    staged: Sequence[StagedTable],
) -> dict[str, int]:
    """Write the log; then, if ``audit.status`` is ``published``, all staged tables. Returns rows by table.

    The log goes first, with the status ``checked``: a kill or a full disk between the two leaves the checks on
    record, the tables as they were, and a rerun of the same command finishes the job. The audit's rows of an
    earlier publication are replaced as a whole, so that a rerun doubles nothing and leaves nothing stale.

    Raises:
        WarehouseError: as ``open_writer``, or if the tables do not take a staged file.
        StorageError: as ``open_writer``, or if a staged file is missing or broken.
    """
    is_publishing = audit.status == "published"
    if is_publishing:
        _require_staged(staged)
    with open_writer(warehouse, wait_seconds) as connection:
        with transaction(connection):
            _write_log(connection, audit, runs, expectations)
        if not is_publishing:
            return {}
        with transaction(connection):
            counts = {table.table: _write_table(connection, audit.audit_id, table) for table in staged}
            for table in TABLES.values():
                if table.scope == "audit" and table.name not in counts:
                    connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ?", [audit.audit_id])
            _insert(connection, "audit", [asdict(audit)])
        return counts


def publish_content(warehouse: Path, wait_seconds: float, staged: Sequence[StagedTable]) -> dict[str, int]:
    """Write tables that belong to no audit (an ingested corpus), in one transaction.

    Raises:
        WarehouseError, StorageError: as ``publish``.
    """
    _require_staged(staged)
    with open_writer(warehouse, wait_seconds) as connection, transaction(connection):
        return {table.table: _write_table(connection, "", table) for table in staged}


def _require_staged(staged: Sequence[StagedTable]) -> None:
    """Look at every file's footer before anything is written: a broken one is named, whatever DuckDB would say."""
    import pyarrow.parquet as pq

    for table in staged:
        for path in table.paths:
            with reading(path):
                pq.read_metadata(path)


def _write_log(
    connection: duckdb.DuckDBPyConnection,
    audit: AuditRecord,
    runs: Sequence[MeasureRun],
    expectations: Sequence[ExpectationRow],
) -> None:
    was_published = connection.execute(
        "SELECT 1 FROM audit WHERE audit_id = ? AND status = 'published'", [audit.audit_id]
    ).fetchone()
    if not was_published:
        status = "checked" if audit.status == "published" else audit.status
        _insert(connection, "audit", [{**asdict(audit), "status": status}])
    elif audit.status != "published":
        # The rows of the earlier run are still there: the audit stays published, with the reason beside it.
        reason = f"a later run of this audit ended as {audit.status}: {audit.reason}"
        connection.execute("UPDATE audit SET reason = ? WHERE audit_id = ?", [reason, audit.audit_id])
    _insert(connection, "measure_run", [{"audit_id": audit.audit_id, **asdict(run)} for run in runs])
    rows = [{"audit_id": audit.audit_id, **asdict(row)} for row in expectations]
    _insert(connection, "expectation_result", rows)
    if rows:
        _forget_other_expectations(connection, audit.audit_id, rows)


def _forget_other_expectations(
    connection: duckdb.DuckDBPyConnection, audit_id: str, rows: Sequence[dict[str, Any]]
) -> None:
    """What failed in an earlier attempt, under other arguments or on other shards, must not stand beside what
    passes now."""
    names = ("table_name", "shard", "expectation", "column_name", "kwargs")
    now = {tuple(_sql_value(row[name]) for name in names) for row in rows}
    kept = connection.execute(f"SELECT {', '.join(names)} FROM expectation_result WHERE audit_id = ?", [audit_id])
    stale = [[audit_id, *key] for key in kept.fetchall() if key not in now]
    if stale:
        same = " AND ".join(f"{name} = ?" for name in names)
        connection.executemany(f"DELETE FROM expectation_result WHERE audit_id = ? AND {same}", stale)


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = list(rows[0])
    values = [[_sql_value(row[column]) for column in columns] for row in rows]
    places = ", ".join("?" for _ in columns)
    connection.executemany(f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({places})", values)


def _sql_value(value: Any) -> Any:
    return json.dumps(_without_nan(value), sort_keys=True, default=str) if isinstance(value, (dict, list)) else value


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: the null key of a broken row comes as one from pandas."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_table(connection: duckdb.DuckDBPyConnection, audit_id: str, staged: StagedTable) -> int:
    """Bring one table's staged files in. Table names come from ``TABLES``, never from a user."""
    import duckdb

    table = TABLES[staged.table]
    paths = [_literal(path) for path in staged.paths]
    # Folders called name=value are no partitions: the file has all columns that there are.
    source = "read_parquet(?, hive_partitioning = false)"
    statement = f"SELECT * FROM {source}"
    parameters: list[Any] = [paths]
    if table.scope == "audit":
        statement, parameters = f"SELECT ? AS audit_id, * FROM {source}", [audit_id, paths]
    verb = "INSERT OR REPLACE INTO"
    if table.is_bulk:
        verb = "INSERT INTO"
    elif table.is_kept:
        # Content never changes under its id: what is there already need not be written again.
        verb = "INSERT OR IGNORE INTO"
        kept = f"SELECT 1 FROM {table.name} AS kept WHERE kept.{table.keys[0]} = staged.{table.keys[0]}"
        statement += f" AS staged WHERE NOT EXISTS ({kept})"
    try:
        if table.is_bulk:
            connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ?", [audit_id])
        connection.execute(f"{verb} {table.name} BY NAME {statement}", parameters)
        if table.scope == "audit" and not table.is_bulk:
            # Replaced in place, then what is left over goes: DuckDB never gives back the space of deleted rows
            # in a table with a key, so that deleting first would let the file grow with every rerun.
            same = " AND ".join(f"staged.{key} = {table.name}.{key}" for key in table.keys)
            left_over = f"NOT EXISTS (SELECT 1 FROM {source} AS staged WHERE {same})"
            connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ? AND {left_over}", [audit_id, paths])
        row = connection.execute(
            "SELECT sum(num_rows) FROM (SELECT DISTINCT file_name, num_rows FROM parquet_file_metadata(?))",
            [paths],
        ).fetchone()
    except duckdb.Error as error:
        explained = explain(error, Path(staged.paths[0]))
        if isinstance(explained, StorageError):
            raise
        raise WarehouseError(
            f"The table {table.name} does not take its staged rows: {str(error).splitlines()[0]} "
            f"(from {', '.join(staged.paths[:3])}).",
            kept="The published tables are as they were, and the staged files are kept.",
            next_step="Delete those files and run the same command again: only they are computed anew.",
        ) from error
    return int(row[0] or 0) if row else 0


def _literal(path: str) -> str:
    """A path as DuckDB's globbing reads it: every character is itself."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)
