"""Publishes an audit: the log in one transaction, all tables in another; and downstream scores, replaced by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import duckdb
import pyarrow.parquet as pq
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from embaudit.corpora.scores.formats import Score
from embaudit.steps.staging.files import mark_used
from embaudit.steps.staging.stage import opened
from embaudit.system.settings import Warehouse
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.lake import is_conflict
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable, replace_rows, sql_value, transaction, write_table
from embaudit.words.errors import StorageError, WarehouseError
from embaudit.words.masking import masker

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


# Writers of a lake take a lock, so they only conflict if one was killed during its commit or is another program.
MAX_ATTEMPTS = 20
Written = TypeVar("Written")


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
    # Versions of the packages that computed its results.
    libraries: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExpectationRow:
    """The outcome of one expectation on one staged file (or on all of a table's files)."""

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


def publish(
    warehouse: Warehouse | str,
    wait_seconds: float,
    audit: AuditRecord,
    runs: Sequence[MeasureRun],
    expectations: Sequence[ExpectationRow],
    staged: Sequence[StagedTable],
) -> dict[str, int]:
    """Write the log; then, if ``audit.status`` is ``published``, all staged tables. Returns rows by table.

    The log is written first, with the status ``checked``: after a kill or full disk between the two, the checks are on
    record, the tables unchanged, and running the same command again finishes the job. Rows from an earlier publication
    of the audit are replaced completely, so a rerun leaves no duplicate or stale rows.

    Raises:
        WarehouseError: as ``open_writer``, or if a table does not accept a staged file.
        StorageError: as ``open_writer``, or if a staged file is missing or broken.
    """
    is_publishing = audit.status == "published"
    if is_publishing:
        _require_staged(staged)

    def write(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
        with transaction(connection):
            _write_log(connection, audit, runs, expectations)
        if not is_publishing:
            return {}
        with transaction(connection):
            counts = {table.table: write_table(connection, audit.audit_id, table) for table in staged}
            for table in TABLES.values():
                if table.scope == "audit" and table.name not in counts:
                    connection.execute(f"DELETE FROM {table.name} WHERE audit_id = ?", [audit.audit_id])
            _write_names(connection, audit)
        return counts

    counts = run_write(warehouse, wait_seconds, write)
    mark_used(tuple(path for table in staged for path in table.paths))
    return counts


def was_published(warehouse: Warehouse | str, audit_id: str) -> bool:
    """Whether an audit is published; False if there is no warehouse yet, or it cannot be read now."""
    try:
        with open_reader(warehouse, wait_seconds=0) as connection:
            found = connection.execute(
                "SELECT 1 FROM audit WHERE audit_id = ? AND status = 'published'", [audit_id]
            ).fetchone()
    except WarehouseError:
        return False
    return found is not None


def publish_content(warehouse: Warehouse | str, wait_seconds: float, staged: Sequence[StagedTable]) -> dict[str, int]:
    """Write tables that do not belong to an audit (an ingested corpus) in one transaction.

    Raises:
        WarehouseError, StorageError: as ``publish``.
    """
    _require_staged(staged)

    def write(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
        with transaction(connection):
            return {table.table: write_table(connection, "", table) for table in staged}

    return run_write(warehouse, wait_seconds, write)


def run_write(
    warehouse: Warehouse | str, wait_seconds: float, write: Callable[[duckdb.DuckDBPyConnection], Written]
) -> Written:
    """Write on the writing connection, retrying if another writer of a lake was first.

    Raises:
        WarehouseError, StorageError: as ``open_writer``.
    """

    def once() -> Written:
        with open_writer(warehouse, wait_seconds) as connection:
            return write(connection)

    return Retrying(
        retry=retry_if_exception(is_conflict),
        stop=stop_after_attempt(MAX_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.1, max=2.0),
        reraise=True,
    )(once)


def _write_names(connection: duckdb.DuckDBPyConnection, audit: AuditRecord) -> None:
    """The audit's row, which keeps the name that was asked for first, and the one that was asked for now."""
    first = connection.execute(
        "SELECT source FROM audit_name WHERE audit_id = ? ORDER BY asked, source LIMIT 1", [audit.audit_id]
    ).fetchone()
    now = audit.settings.get("source")
    row = asdict(audit)
    if first is not None:
        row["settings"] = {**audit.settings, "source": first[0]}
    replace_rows(connection, "audit", [row])
    if now:
        named = {"audit_id": audit.audit_id, "source": now, "asked": audit.finished or audit.started}
        replace_rows(connection, "audit_name", [named])


def _require_staged(staged: Sequence[StagedTable]) -> None:
    """Read every file's footer before writing anything, so that a broken file is named in the error."""
    for table in staged:
        for path in table.paths:
            with opened(path) as source:
                pq.read_metadata(source)


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
        replace_rows(connection, "audit", [{**asdict(audit), "status": status}])
    elif audit.status != "published":
        # The rows of the earlier run are still there: the audit stays published, with the reason noted.
        reason = f"a later run of this audit ended as {audit.status}: {audit.reason}"
        connection.execute("UPDATE audit SET reason = ? WHERE audit_id = ?", [reason, audit.audit_id])
    paid = dict(
        connection.execute(
            "SELECT measure_key, seconds FROM measure_run WHERE audit_id = ?", [audit.audit_id]
        ).fetchall()
    )
    measured = [{"audit_id": audit.audit_id, **asdict(run)} for run in runs]
    # The same audit again computes nothing, and what it took stays on record.
    for row in measured:
        row["seconds"] = paid.get(row["measure_key"]) if row["seconds"] is None else row["seconds"]
    replace_rows(connection, "measure_run", measured)
    rows = [{"audit_id": audit.audit_id, **asdict(row)} for row in expectations]
    replace_rows(connection, "expectation_result", rows)
    if rows:
        _forget_other_expectations(connection, audit.audit_id, rows)


def _forget_other_expectations(
    connection: duckdb.DuckDBPyConnection, audit_id: str, rows: Sequence[dict[str, Any]]
) -> None:
    """Delete results of an earlier attempt with other arguments or shards."""
    names = ("table_name", "shard", "expectation", "column_name", "kwargs")
    mask = masker()
    now = {tuple(sql_value(row[name], mask) for name in names) for row in rows}
    kept = connection.execute(f"SELECT {', '.join(names)} FROM expectation_result WHERE audit_id = ?", [audit_id])
    stale = [[audit_id, *key] for key in kept.fetchall() if key not in now]
    if stale:
        same = " AND ".join(f"{name} = ?" for name in names)
        connection.executemany(f"DELETE FROM expectation_result WHERE audit_id = ? AND {same}", stale)
