"""kill -9 at the points of publishing that matter: all rows of an audit are there afterwards, or none."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from fault_table import Record
from own_processes import Start
from plausible import SCHEMAS, audit_record, measure_runs, plausible_rows, stage_all
from runs import rows, statuses, wait_for

from embaudit.steps.staging.stage import write_columns
from embaudit.warehouse.publish import publish
from embaudit.warehouse.write import StagedTable

PAIRS = 1_500_000
PUBLISHER = """
import sys
from pathlib import Path
from plausible import audit_record, measure_runs
from embaudit.warehouse.publish import publish
from embaudit.warehouse.write import StagedTable
import duckdb, pyarrow.parquet
paths = sorted(Path(sys.argv[2]).glob("*.parquet"))
staged = [StagedTable(path.name.rsplit("-", 1)[0], (str(path),)) for path in paths]
print("publishing", flush=True)
publish(Path(sys.argv[1]), 30, audit_record("a2"), measure_runs(), [], staged)
print("published", flush=True)
"""
Moment = Callable[[Path, "subprocess.Popen[str]"], object]


def log_size(warehouse: Path) -> int:
    """Bytes of the write-ahead log, where DuckDB puts what is committed."""
    try:
        return Path(f"{warehouse}.wal").stat().st_size
    except FileNotFoundError:
        return 0


def before_the_log(warehouse: Path, running: subprocess.Popen[str]) -> object:
    """At once: the publisher looks at the staged files or opens the warehouse."""
    return None


def when_the_write_ahead_log_appears(warehouse: Path, running: subprocess.Popen[str]) -> object:
    """The first commit, of the audit's log, in a file that was not there before."""
    return wait_for(lambda: log_size(warehouse) or running.poll() is not None, pause=0.0002)


def among_the_tables(warehouse: Path, running: subprocess.Popen[str]) -> object:
    """DuckDB writes the rows of a large insert into the database before they are committed."""
    start = warehouse.stat().st_size
    return wait_for(lambda: warehouse.stat().st_size > start + 4 * 1024**2 or running.poll() is not None, pause=0.0005)


def just_before_the_last_commit(warehouse: Path, running: subprocess.Popen[str]) -> object:
    """Nearly all rows are written."""
    start = warehouse.stat().st_size
    return wait_for(lambda: warehouse.stat().st_size > start + 20 * 1024**2 or running.poll() is not None, pause=0.0005)


MOMENTS: tuple[Moment, ...] = (
    before_the_log,
    when_the_write_ahead_log_appears,
    among_the_tables,
    just_before_the_last_commit,
)


@pytest.mark.slow
@pytest.mark.fault("kill -9 at four points of publishing")
def test_points_of_publishing(tmp_path: Path, process: Start, record_fault: Record) -> None:
    folder = tmp_path / "large"
    small = [table for table in stage_all(folder, plausible_rows()) if table.table != "socm_pair"]
    values = np.random.default_rng(0).random((3, PAIRS))
    block = {"corpus": ["wikipedia"] * PAIRS, "first": np.arange(PAIRS), "second": np.arange(PAIRS) + 1}
    block |= dict(zip(("d_mu", "d_sigma", "socm"), values, strict=True))
    path = folder / "socm_pair-00000.parquet"
    write_columns(path, [block], SCHEMAS["socm_pair"])
    staged = [*small, StagedTable("socm_pair", (str(path),))]
    first = tmp_path / "first.duckdb"
    publish(first, 0, audit_record("a1"), measure_runs(), [], stage_all(tmp_path / "a1", plausible_rows()))
    alone = rows(first)
    found = {}
    for moment in MOMENTS:
        warehouse = tmp_path / f"{moment.__name__}.duckdb"
        shutil.copy(first, warehouse)
        running = process(PUBLISHER, warehouse, folder)
        running.says("publishing")
        moment(warehouse, running)
        running.kill_9()
        status = statuses(warehouse)
        # Rows of the killed audit, beside those of the first one and of what both share.
        of_a2 = count(warehouse, "SELECT count(*) FROM socm_pair WHERE audit_id = 'a2'")
        assert of_a2 in (0, PAIRS)
        assert status[1:] == (["published"] if of_a2 else status[1:])
        if not of_a2:
            assert status in (["published"], ["published", "checked"])
            assert {name: n for name, n in rows(warehouse).items() if n != alone[name]} == {}
        found[moment.__name__.replace("_", " ")] = status[1] if status[1:] else "nothing"
        publish(warehouse, 0, audit_record("a2"), measure_runs(), [], staged)
        assert count(warehouse, "SELECT count(*) FROM socm_pair WHERE audit_id = 'a2'") == PAIRS
        assert statuses(warehouse) == ["published", "published"]
        assert rows(warehouse)["socm_pair"] == PAIRS + alone["socm_pair"]
    assert found["before the log"] == "nothing"
    assert "checked" in found.values(), found
    record_fault(
        "killed " + ", ".join(f"{moment} (the log said: {status})" for moment, status in found.items()),
        "the earlier audit's rows; of the killed one all rows or none",
        f"ended with 0 each time: all {PAIRS:,} pairs, none twice",
    )


def count(warehouse: Path, sql: str) -> int:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        row = connection.execute(sql).fetchone()
        return int(row[0]) if row else 0
