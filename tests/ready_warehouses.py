"""Warehouses that are made once per test run: a copy takes milliseconds, publishing a whole audit takes a second.

A plugin of ``tests/conftest.py``. What it hands out once is for reading; a test that writes takes a copy.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all

from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.publish import StagedTable, publish


@pytest.fixture(scope="session")
def staged_once(tmp_path_factory: pytest.TempPathFactory) -> list[StagedTable]:
    """The staged files of one audit, ``plausible_rows()``."""
    return stage_all(tmp_path_factory.mktemp("staged"), plausible_rows())


@pytest.fixture(scope="session")
def empty_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse without an audit."""
    path = tmp_path_factory.mktemp("empty") / "warehouse.duckdb"
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
