"""Ctrl-C, kill -9 and a locked warehouse, one after the other on one audit: all in one story."""

from __future__ import annotations

from pathlib import Path
from signal import SIGINT, SIGKILL

import pytest
from fault_table import Record
from runs import Make, Rows, Stroke, content, hold, rewritten, staged


@pytest.mark.slow
@pytest.mark.fault("kill -9 of a running audit")
@pytest.mark.fault("Ctrl-C")
@pytest.mark.fault("warehouse locked by another process")
def test_an_audit_that_is_killed_interrupted_and_locked_out_continues_each_time(
    command: Make, undisturbed: Rows, home: Path, record_fault: Record
) -> None:
    audit, warehouse = command(EMBAUDIT_LOCK_WAIT_SECONDS="1"), home / "warehouse.duckdb"
    assert audit.start(Stroke(SIGKILL, "socm_pair")).wait().returncode == -SIGKILL
    killed = staged(home)
    assert {path.name.split("-")[0] for path in killed} >= {"checkpoint", "socm_text"}
    assert not warehouse.exists()

    result = audit.start(Stroke(SIGINT, "socm_tightness")).wait()
    assert result.returncode == 130, result.stderr
    assert "Run the same command again" in result.stderr
    assert "Traceback" not in result.stderr
    interrupted = staged(home)
    assert not rewritten(killed, interrupted)
    assert {path.name.split("-")[0] for path in interrupted} >= {"socm_text", "socm_pair"}
    assert not warehouse.exists()
    record_fault(
        f"killed with {len(killed)} files staged, and another one that had no name yet",
        "all of them whole",
        "none of them computed again",
        fault="kill -9 of a running audit",
    )

    holder = hold(warehouse)
    try:
        locked = audit.run()
    finally:
        holder.kill()
        holder.wait()
    assert locked.returncode == 2
    assert "Another process has had the warehouse" in locked.stderr
    assert "Traceback" not in locked.stderr
    complete = staged(home)
    assert not rewritten(interrupted, complete)
    record_fault(
        f"exit code 130: {result.paragraph}",
        f"{len(interrupted)} staged files",
        "none of them computed again",
        fault="Ctrl-C",
    )

    last = audit.run()
    assert last.returncode == 0, last.stderr
    assert staged(home) == complete
    assert content(warehouse) == undisturbed
    record_fault(
        f"waited as long as EMBAUDIT_LOCK_WAIT_SECONDS says, then exit code 2: {locked.paragraph}",
        f"all {len(complete)} staged files; the other program's warehouse",
        "unlocked: ended with 0, nothing computed again, the same rows as an audit that nothing disturbed",
        fault="warehouse locked by another process",
    )
