"""Two audits, or two publishers, on one warehouse: both end well, and no row is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from fault_table import Record
from own_processes import Start
from plausible import audit_record, measure_runs, plausible_rows, stage_all
from runs import Make, Rows, content, rows

from embaudit.warehouse.publish import publish
from embaudit.warehouse.tables import TABLES

PUBLISHERS = 4
pytestmark = pytest.mark.xdist_group("faults")


def keyed_twice(warehouse: Path) -> dict[str, int]:
    """Rows that are there more than once, by table."""
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        found = {}
        for name in TABLES:
            (extra,) = connection.execute(
                # By a name of its own: a table may have a column that is called as it is.
                f"SELECT count(*) - count(DISTINCT whole_row) FROM {name} AS whole_row"
            ).fetchone() or (0,)
            if extra:
                found[name] = int(extra)
        return found


@pytest.mark.slow
@pytest.mark.fault("two audits of different checkpoints at once")
def test_two_audits_of_different_checkpoints(
    command: Make, other_checkpoint: Path, home: Path, tmp_path: Path, record_fault: Record
) -> None:
    alone = tmp_path / "alone"
    for checkpoint in ({}, {"checkpoint": other_checkpoint}):
        assert command(**checkpoint, EMBAUDIT_HOME=str(alone)).run().returncode == 0
    both = [command().start(), command(checkpoint=other_checkpoint).start()]
    ended = [running.wait() for running in both]
    assert [one.returncode for one in ended] == [0, 0], "".join(one.stderr for one in ended)
    warehouse = home / "warehouse.duckdb"
    assert content(warehouse) == content(alone / "warehouse.duckdb")
    assert not keyed_twice(warehouse)
    record_fault(
        "both ended with 0",
        f"two audits, {rows(warehouse)['socm_pair']} pairs: the same rows as one after the other, none twice",
        "not needed",
    )


@pytest.mark.slow
@pytest.mark.fault("the same audit twice at once")
def test_the_same_audit_twice(command: Make, undisturbed: Rows, home: Path, record_fault: Record) -> None:
    both = [command().start(), command().start()]
    ended = [running.wait() for running in both]
    assert [one.returncode for one in ended] == [0, 0], "".join(one.stderr for one in ended)
    assert content(home / "warehouse.duckdb") == undisturbed
    assert not keyed_twice(home / "warehouse.duckdb")
    record_fault("both ended with 0", "one audit, the same rows as from one command, none twice", "not needed")


PUBLISHER = """
import sys
from pathlib import Path
from plausible import audit_record, measure_runs, plausible_rows, stage_all
from embaudit.warehouse.publish import publish

warehouse, folder, audit = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
staged = stage_all(folder, plausible_rows())
print("ready", flush=True)
sys.stdin.readline()
publish(warehouse, 60, audit_record(audit), measure_runs(), [], staged)
"""


@pytest.mark.slow
@pytest.mark.fault("four publishers at once")
def test_publishers_at_once(tmp_path: Path, record_fault: Record, process: Start) -> None:
    """Two of them publish the same audit; the warehouse does not exist yet."""
    warehouse = tmp_path / "warehouse.duckdb"
    audits = ["a1", "a2", "a3", "a3"]
    running = [process(PUBLISHER, warehouse, tmp_path / str(i), audit) for i, audit in enumerate(audits)]
    for one in running:
        one.says("ready")
    for one in running:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in running:
        assert one.wait(timeout=120) == 0, one.stderr.read()
    expected = tmp_path / "expected.duckdb"
    for audit in ("a1", "a2", "a3"):
        staged = stage_all(tmp_path / "expected", plausible_rows())
        publish(expected, 0, audit_record(audit), measure_runs(), [], staged)
    assert content(warehouse) == content(expected)
    assert not keyed_twice(warehouse)
    record_fault(
        f"all {PUBLISHERS} waited for each other's lock and ended with 0",
        "three audits, the same rows as one after the other, none twice",
        "not needed",
    )
