"""Warehouses that are made once per test run: a copy takes milliseconds, publishing a whole audit takes a second.

A plugin of ``tests/conftest.py``. What it hands out once is for reading; a test that writes takes a copy.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all

from embaudit.declared.table import DeclaredTable
from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.publish import AuditRecord, ExpectationRow, MeasureRun, publish
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable, replace_rows, transaction

MANY = 100  # rows: what Arrow brings in faster than one statement with all their values


def put_audit(
    warehouse: Path,
    record: AuditRecord,
    rows: Mapping[str, list[dict[str, Any]]],
    runs: Sequence[MeasureRun] | None = None,
    checks: Sequence[ExpectationRow] = (),
) -> None:
    """Leave in a warehouse what publishing a new audit would, in a fraction of its time (``test_publish`` compares).

    Args:
        runs: by default one of each measure that has rows.
    """
    with _written(warehouse) as connection:
        _put(connection, record, rows, runs, checks)


def put_audits(warehouse: Path, audits: Iterable[tuple[AuditRecord, Mapping[str, list[dict[str, Any]]]]]) -> None:
    """The same for several audits, on one connection: opening and closing the file takes longer than few rows do."""
    with _written(warehouse) as connection:
        for record, rows in audits:
            _put(connection, record, rows, None, ())


@contextmanager
def _written(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """What is there was made by this program: whether a migration lacks need not be asked again for each audit."""
    if not warehouse.exists():
        with open_writer(warehouse, 0):
            pass
    with duckdb.connect(str(warehouse)) as connection:
        yield connection


def _put(
    connection: duckdb.DuckDBPyConnection,
    record: AuditRecord,
    rows: Mapping[str, list[dict[str, Any]]],
    runs: Sequence[MeasureRun] | None,
    checks: Sequence[ExpectationRow],
) -> None:
    runs = measure_runs(dict(rows)) if runs is None else runs
    # For so few rows a second thread costs more than it brings.
    connection.execute("SET threads = 1")
    with transaction(connection):
        is_new = not connection.execute("SELECT 1 FROM audit WHERE audit_id = ?", [record.audit_id]).fetchall()
        replace_rows(connection, "audit", [asdict(record)])
        replace_rows(connection, "measure_run", [{"audit_id": record.audit_id, **asdict(run)} for run in runs])
        replace_rows(
            connection, "expectation_result", [{"audit_id": record.audit_id, **asdict(check)} for check in checks]
        )
        for name, found in rows.items():
            if found:
                _insert(connection, TABLES[name], record.audit_id, found, is_new)


def _insert(
    connection: duckdb.DuckDBPyConnection,
    table: DeclaredTable,
    audit_id: str,
    rows: list[dict[str, Any]],
    is_new: bool,
) -> None:
    """A plain statement with the rows' values takes a fifth of the time of one that may replace rows from Arrow."""
    own = {"audit_id": audit_id} if table.scope == "audit" else {}
    verb = "INSERT OR IGNORE" if table.is_kept else "INSERT OR REPLACE"
    if table.is_bulk or (own and is_new):
        verb = "INSERT"
    if len(rows) <= MANY:
        columns = [*own, *rows[0]]
        names = ", ".join(f'"{column}"' for column in columns)
        row = f"({', '.join('?' * len(columns))})"
        connection.execute(
            f"{verb} INTO {table.name} ({names}) VALUES {', '.join([row] * len(rows))}",
            [{**own, **found}[column] for found in rows for column in columns],
        )
        return
    import pyarrow as pa

    connection.register("given", pa.Table.from_pylist([{**own, **row} for row in rows]))
    connection.execute(f"{verb} INTO {table.name} BY NAME FROM given")
    connection.unregister("given")


@pytest.fixture(scope="session")
def staged_once(tmp_path_factory: pytest.TempPathFactory) -> list[StagedTable]:
    """The staged files of one audit, ``plausible_rows()``."""
    return stage_all(tmp_path_factory.mktemp("staged"), plausible_rows())


@pytest.fixture(scope="session")
def empty_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse without an audit.

    Its blocks are the smallest: with 140 tables of few rows, files are a sixth as large and as quickly copied.
    """
    path = tmp_path_factory.mktemp("empty") / "warehouse.duckdb"
    duckdb.connect(str(path), config={"default_block_size": "16384"}).close()
    with open_writer(path, 0):
        pass
    return path


@pytest.fixture(scope="session")
def published_once(empty_once: Path, staged_once: list[StagedTable], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one audit, a1 of ``plausible_rows()``."""
    path = tmp_path_factory.mktemp("published") / "warehouse.duckdb"
    shutil.copy(empty_once, path)
    publish(path, 0, audit_record(), measure_runs(), [expectation()], staged_once)
    return path


@pytest.fixture
def empty_warehouse(empty_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(empty_once, tmp_path / "warehouse.duckdb"))


@pytest.fixture
def published_warehouse(published_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(published_once, tmp_path / "published.duckdb"))
