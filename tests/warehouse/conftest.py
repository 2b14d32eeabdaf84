"""Fixtures of the warehouse's tests: a warehouse each, and processes that can be killed."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from postgres_server import USER, Postgres
from warehouse_rows import FEW

from embaudit.system.settings import Lake
from embaudit.warehouse.write import StagedTable


@pytest.fixture
def warehouse(empty_once: Path, tmp_path: Path) -> Path:
    """A warehouse without an audit, in a folder of its own."""
    (tmp_path / "home").mkdir()
    return Path(shutil.copy(empty_once, tmp_path / "home"))


@pytest.fixture
def no_warehouse(tmp_path: Path) -> Path:
    """Where a warehouse could be; its folder does not exist yet."""
    return tmp_path / "nowhere" / "warehouse.duckdb"


@pytest.fixture
def published(published_once: Path, warehouse: Path) -> Path:
    """The same with one audit, a1 of ``plausible_rows()``."""
    return Path(shutil.copy(published_once, warehouse))


@pytest.fixture
def staged(staged_once: list[StagedTable], tmp_path: Path) -> list[StagedTable]:
    """One audit's staged files, which a test may damage."""
    folder = tmp_path / "staging"
    folder.mkdir()
    return [StagedTable(table.table, tuple(shutil.copy(path, folder) for path in table.paths)) for table in staged_once]


@pytest.fixture
def few(staged: list[StagedTable]) -> list[StagedTable]:
    """Enough where not every table is looked at; a table of each kind."""
    return [table for table in staged if table.table in FEW]


@pytest.fixture(scope="session")
def lake_database(postgres: Postgres) -> str:
    """One database for the catalogs of all lakes of the session, in libpq's words."""
    return f"dbname={postgres.create('lakes')} host={postgres.host} port={postgres.port} user={USER}"


@pytest.fixture
def lake(lake_database: str, tmp_path: Path) -> Lake:
    """A DuckLake of its own that does not exist yet."""
    return Lake(lake_database, tmp_path / "lake", f"w_{uuid4().hex[:12]}")
