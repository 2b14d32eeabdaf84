"""Several processes publish into one DuckLake at once: nothing is lost, nothing is there twice, kills included."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from plausible import plausible_rows, stage_all

from embaudit.address import Lake
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.tables import TABLES

pytestmark = pytest.mark.slow

# Every publisher brings the audit "shared", an audit of its own, and content that the others bring too. A failure
# to publish ends the process with its traceback.
PUBLISHER = """
import os, sys
from pathlib import Path
from plausible import audit_record, expectation, measure_runs
from embaudit.warehouse import connect_lake
from embaudit.warehouse.publish import StagedTable, publish
address, staging, name, rounds, queue = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]
if queue == "no-queue":
    # Whoever asks gets the lock: only the row that all writers touch is left.
    class Nothing:
        def execute(self, sql): pass
        def close(self): pass
    connect_lake.try_lock = lambda connection, lake: Nothing()
staged = [
    StagedTable(path.name.rsplit("-", 1)[0], (str(path),)) for path in sorted(staging.glob("*.parquet"))
]
print("publishing", flush=True)
for _ in range(rounds):
    for audit_id in ("shared", f"own-{name}"):
        counts = publish(address, 300, audit_record(audit_id), measure_runs(), [expectation()], staged)
        assert counts["token"] == 8, counts
print("done", flush=True)
"""
EXPECTED = {name: len(rows) for name, rows in plausible_rows().items()}


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    stage_all(tmp_path / "staged", plausible_rows())
    return tmp_path / "staged"


def require_whole(lake: Lake, audits: set[str]) -> None:
    """Every audit has all its rows once, and content is there once, whoever brought it."""
    with open_reader(lake, 60) as connection:
        found = connection.execute("SELECT audit_id, status FROM audit").fetchall()
        assert sorted(found) == sorted((audit_id, "published") for audit_id in audits)
        for name, table in TABLES.items():
            if name not in EXPECTED:
                continue
            if table.scope == "content":
                assert connection.execute(f"SELECT count(*) FROM {name}").fetchall() == [(EXPECTED[name],)], name
            else:
                counts = dict(connection.execute(f"SELECT audit_id, count(*) FROM {name} GROUP BY 1").fetchall())
                assert counts == dict.fromkeys(audits, EXPECTED[name]), name
        for name in ("measure_run", "expectation_result"):
            each = Counter(row[0] for row in connection.execute(f"SELECT audit_id FROM {name}").fetchall())
            assert set(each) == audits
            assert len(set(each.values())) == 1, name


@pytest.mark.parametrize(("queue", "rounds"), [("queue", 4), ("no-queue", 2)])
def test_publishers_at_once_lose_and_double_nothing(
    lake: Lake, staging: Path, process: Callable[..., subprocess.Popen[str]], queue: str, rounds: int
) -> None:
    if queue == "no-queue":
        # Two that make one lake at the same time need the queue: they are not what this is about.
        with open_writer(lake, 60):
            pass
    names = ("a", "b", "c", "d") if queue == "queue" else ("a", "b")
    publishers = [process(PUBLISHER, lake, staging, name, rounds, queue) for name in names]
    for publisher in publishers:
        output, errors = publisher.communicate(timeout=540)
        assert output.split() == ["publishing", "done"], errors[-3000:]
    require_whole(lake, {"shared", *(f"own-{name}" for name in names)})


def test_killed_publishers_leave_all_or_nothing_to_the_others(
    lake: Lake, staging: Path, process: Callable[..., subprocess.Popen[str]]
) -> None:
    moments = random.Random(20261121)
    steady = process(PUBLISHER, lake, staging, "steady", 6, "queue")
    killed = 0
    for attempt in range(5):
        victim = process(PUBLISHER, lake, staging, f"victim-{attempt}", 50, "queue")
        assert victim.stdout is not None
        assert victim.stdout.readline() == "publishing\n"
        time.sleep(moments.uniform(0.5, 5.0))
        killed += victim.poll() is None
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        # A dead writer's place in the queue is free at once, not at some timeout.
        with open_writer(lake, 60):
            pass
        require_all_or_nothing(lake)
    output, errors = steady.communicate(timeout=540)
    assert output.split() == ["publishing", "done"], errors[-3000:]
    assert killed, "nobody was killed in time: the test proves nothing"
    # The same call finishes what a kill has left.
    left = [f"victim-{attempt}" for attempt in range(5)]
    finishing = [process(PUBLISHER, lake, staging, name, 1, "queue") for name in left]
    for one in finishing:
        output, errors = one.communicate(timeout=540)
        assert output.split() == ["publishing", "done"], errors[-3000:]
    require_whole(lake, {"shared", "own-steady", *(f"own-{name}" for name in left)})


def require_all_or_nothing(lake: Lake) -> None:
    """Each audit's tables are whole if it is published, and empty if it is only checked."""
    with open_reader(lake, 60) as connection:
        connection.execute("BEGIN TRANSACTION")
        status = dict(connection.execute("SELECT audit_id, status FROM audit").fetchall())
        assert set(status.values()) <= {"published", "checked"}
        for name, expected in EXPECTED.items():
            if TABLES[name].scope == "content":
                assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() in [(0,), (expected,)]
                continue
            counts = dict(connection.execute(f"SELECT audit_id, count(*) FROM {name} GROUP BY 1").fetchall())
            whole = {audit_id: expected for audit_id, state in status.items() if state == "published"}
            assert counts == whole, name
