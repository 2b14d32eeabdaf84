"""Fixtures of the warehouse's tests: a fresh database each, and processes that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from plausible import plausible_rows, stage_all
from postgres_server import USER, Postgres

from embaudit.address import Lake
from embaudit.warehouse.publish import StagedTable

TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Where a warehouse will be; its folder does not exist yet."""
    return tmp_path / "home" / "warehouse.duckdb"


@pytest.fixture
def staged(tmp_path: Path) -> list[StagedTable]:
    """One audit's staged files."""
    return stage_all(tmp_path / "staging", plausible_rows())


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python code in a process of its own, with the tests' modules; what still runs at the end is killed."""
    started = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        running = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        started.append(running)
        return running

    yield start
    for running in started:
        if running.poll() is None:
            running.kill()
        running.communicate()


@pytest.fixture(scope="session")
def lake_database(postgres: Postgres) -> str:
    """One database for the catalogs of all lakes of the session, in libpq's words."""
    return f"dbname={postgres.create('lakes')} host={postgres.host} port={postgres.port} user={USER}"


@pytest.fixture
def lake(lake_database: str, tmp_path: Path) -> Lake:
    """A DuckLake of its own that does not exist yet."""
    return Lake(lake_database, tmp_path / "lake", f"w_{uuid4().hex[:12]}")
