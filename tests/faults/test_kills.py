"""kill -9 at every stage of an audit: nothing half-written is read, and the same command ends with the same rows."""

from __future__ import annotations

from pathlib import Path
from signal import SIGKILL

import pytest
from fault_table import Record
from runs import (
    Make,
    Rows,
    Stroke,
    content,
    is_whole_or_empty,
    rewritten,
    staged,
    staged_files,
    statuses,
    steps,
)

pytestmark = pytest.mark.xdist_group("faults")

# The audit's way from its start, in its order: each kill hits what the one before did not come to.
POINTS = {
    "while the first corpus is staged": Stroke(SIGKILL, "corpus"),
    "when its texts are staged": Stroke(SIGKILL, "text", named=True),
    "before the checkpoint is described": Stroke(SIGKILL, "checkpoint"),
    "while the first step of the measure is written": Stroke(SIGKILL, "socm_text"),
    "when it is staged and Prefect does not know": Stroke(SIGKILL, "socm_text", named=True),
    "among the steps": Stroke(SIGKILL, "socm_pair"),
    "at the last kind of step": Stroke(SIGKILL, "socm_tightness", named=True),
}


@pytest.mark.slow
@pytest.mark.fault("kill -9 at seven points of an audit")
@pytest.mark.fault("kill -9 while an audit publishes")
def test_points_of_an_audit(command: Make, undisturbed: Rows, home: Path, record_fault: Record) -> None:
    """One audit, killed again and again on its way, and once more while it publishes."""
    audit, warehouse = command(), home / "warehouse.duckdb"
    found: list[str] = []
    for point, stroke in POINTS.items():
        before = staged(home)
        assert audit.start(stroke).wait().returncode == -SIGKILL, f"it came to its end, and not to: {point}"
        # What is staged is done, whatever Prefect came to hear of it.
        assert not rewritten(before, staged(home))
        assert not warehouse.exists()
        found.append(f"{point} ({len(staged(home))} files staged)")
    before = staged(home)
    assert audit.start(Stroke(SIGKILL, publishing="socm_tightness")).wait().returncode == -SIGKILL
    kept, status = staged(home), statuses(warehouse)
    assert not rewritten(before, kept)
    assert status == ["checked"]
    assert is_whole_or_empty(warehouse)
    result = audit.run()
    assert result.returncode == 0, result.stderr
    assert staged(home) == kept
    assert content(warehouse) == undisturbed
    record_fault(
        f"{len(found)} kills of a running audit: " + ", ".join(found),
        "no staged file cut short; no warehouse yet",
        "went on each time; ended with 0, with the same rows as an audit that nothing disturbed; no step whose files "
        "were there was computed again",
        fault="kill -9 at seven points of an audit",
    )
    record_fault(
        "killed among the tables, which one transaction writes",
        f"the log says {status[0]}; every table whole or empty; all steps staged",
        f"ended with 0: none of {len(kept)} staged files written again, the same rows as undisturbed",
        fault="kill -9 while an audit publishes",
    )


@pytest.mark.slow
@pytest.mark.fault("kill -9 between tasks and inside one")
def test_only_unfinished_shards_are_computed(command: Make, home: Path, record_fault: Record) -> None:
    """A scan in shards of twenty tokens, killed when some of them are there."""
    audit = command(measures="sticky", EMBAUDIT_TOKENS_PER_SHARD="20")
    running = audit.start()
    running.wait_for(lambda: len([path for path in staged_files(home) if path.name.startswith("moments-")]) >= 6)
    running.kill()
    kept = staged(home)
    shards = [path for path in kept if path.name.startswith("moments-")]
    # What a kill while a file is written leaves: never read, whatever is in it.
    partial = shards[0].with_name(f".{shards[0].name}.1.0123abcd")
    cut = shards[0].read_bytes()[:40]
    partial.write_bytes(cut)
    result = audit.run()
    assert result.returncode == 0, result.stderr
    after = staged(home)
    again = steps(rewritten(kept, after))
    assert len(again) <= 1
    new = steps(set(after) - set(kept))
    # The kill hit the scan: there were shards to come.
    assert [path for path in set(after) - set(kept) if path.name.startswith("moments-")]
    assert partial.read_bytes() == cut
    record_fault(
        f"killed with {len(shards)} shards of the scan staged, and another one on its way",
        "all staged shards whole; the file that was being written keeps a hidden name, which nothing reads",
        f"ended with 0: {len(steps(kept)) - len(again)} steps taken over, the same inodes, {len(again)} "
        f"computed again, {len(new)} new",
    )
