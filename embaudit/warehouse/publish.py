"""Publishing an audit: the log in a transaction of its own, the tables in one more, all or nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.warehouse.connect import open_writer, transaction
from embaudit.warehouse.tables import TABLES

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
    record, the tables as they were, and a rerun of the same command finishes the job.

    Raises:
        WarehouseError, StorageError: as ``open_writer``.
    """
    with open_writer(warehouse, wait_seconds) as connection:
        is_publishing = audit.status == "published"
        with transaction(connection):
            _write_log(
                connection, audit, runs, expectations, status="checked" if is_publishing else audit.status
            )
        if not is_publishing:
            return {}
        with transaction(connection):
            counts = {table.table: _write_table(connection, audit.audit_id, table) for table in staged}
            connection.execute("UPDATE audit SET status = 'published' WHERE audit_id = ?", [audit.audit_id])
        return counts


def publish_content(warehouse: Path, wait_seconds: float, staged: Sequence[StagedTable]) -> dict[str, int]:
    """Write tables that belong to no audit (an ingested corpus), in one transaction."""
    with open_writer(warehouse, wait_seconds) as connection, transaction(connection):
        return {table.table: _write_table(connection, "", table) for table in staged}


def _write_log(
    connection: duckdb.DuckDBPyConnection,
    audit: AuditRecord,
    runs: Sequence[MeasureRun],
    expectations: Sequence[ExpectationRow],
    status: str,
) -> None:
    # A failed rerun must not hide that the same audit is published: its rows are still there.
    was_published = connection.execute(
        "SELECT 1 FROM audit WHERE audit_id = ? AND status = 'published'", [audit.audit_id]
    ).fetchone()
    if was_published and status == "failed":
        status = "published"
    _insert(connection, "audit", [{**asdict(audit), "status": status}])
    _insert(connection, "measure_run", [{"audit_id": audit.audit_id, **asdict(run)} for run in runs])
    # A rerun gives the same expectations; one that is new in this version of embaudit is added.
    _insert(
        connection,
        "expectation_result",
        [{"audit_id": audit.audit_id, **asdict(row)} for row in expectations],
    )


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = list(rows[0])
    values = [[_sql_value(row[column]) for column in columns] for row in rows]
    places = ", ".join("?" for _ in columns)
    connection.executemany(f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({places})", values)


def _sql_value(value: Any) -> Any:
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, (dict, list)) else value


def _write_table(connection: duckdb.DuckDBPyConnection, audit_id: str, staged: StagedTable) -> int:
    """Bring one table's staged files in. Table names come from ``TABLES``, never from a user."""
    table = TABLES[staged.table]
    paths = list(staged.paths)
    if table.scope == "content":
        statement, parameters = "SELECT * FROM read_parquet(?)", [paths]
    else:
        statement, parameters = "SELECT ? AS audit_id, * FROM read_parquet(?)", [audit_id, paths]
    if table.is_bulk:
        connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ?", [audit_id])
        verb = "INSERT INTO"
    else:
        verb = "INSERT OR REPLACE INTO"
    if table.name in ("text", "text_pair"):
        # Content never changes under its id: what is there already need not be written again.
        statement += f" AS staged WHERE NOT EXISTS (SELECT 1 FROM {table.name} AS kept WHERE kept.corpus_id = staged.corpus_id)"
    connection.execute(f"{verb} {table.name} BY NAME {statement}", parameters)
    row = connection.execute(
        "SELECT sum(num_rows) FROM (SELECT DISTINCT file_name, num_rows FROM parquet_file_metadata(?))",
        [paths],
    ).fetchone()
    return int(row[0] or 0) if row else 0
