"""kill -9 at any moment: nothing half-written is read, and the same command finishes with the same rows."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from fault_table import Record
from runs import Make, Rows, content, is_whole_or_empty, rewritten, staged, statuses, steps, wait_for

KILLS, HOMES = 20, 4


@pytest.mark.slow
@pytest.mark.fault("kill -9 at 20 random points")
def test_twenty_random_points(command: Make, undisturbed: Rows, tmp_path: Path, record_fault: Record) -> None:
    """Audits from nothing, each killed up to five times and then run to its end, until twenty kills have hit."""
    clock = tmp_path / "clock"
    started = time.monotonic()
    assert command(EMBAUDIT_HOME=str(clock)).run().returncode == 0
    whole = time.monotonic() - started
    points = random.Random(20261121)
    hits, homes = 0, 0
    seen = {"nothing staged": 0, "steps staged": 0, "a warehouse without the audit": 0, "published": 0}
    while hits < KILLS:
        home, homes = tmp_path / f"home-{homes}", homes + 1
        audit, warehouse = command(EMBAUDIT_HOME=str(home)), home / "warehouse.duckdb"
        for _ in range(KILLS // HOMES):
            before = staged(home)
            running = audit.start()
            time.sleep(whole * points.uniform(0.2, 1.0))
            hits += running.is_running()
            running.kill()
            # A step that was recorded as done is not computed again; one may have been staged and not recorded.
            assert len(steps(rewritten(before, staged(home)))) <= 1
            if warehouse.is_file():
                assert is_whole_or_empty(warehouse)
                seen["published" if "published" in statuses(warehouse) else "a warehouse without the audit"] += 1
            else:
                seen["steps staged" if staged(home) else "nothing staged"] += 1
            if hits == KILLS or "published" in (statuses(warehouse) if warehouse.is_file() else ()):
                break
        kept = staged(home)
        result = audit.run()
        assert result.returncode == 0, result.stderr
        assert len(steps(rewritten(kept, staged(home)))) <= 1
        assert content(warehouse) == undisturbed
    record_fault(
        f"{hits} kills of a running audit, each at a random moment of its way; after them "
        + ", ".join(f"{what} {times} times" for what, times in seen.items() if times),
        "every table whole or empty; no staged file cut short",
        f"ended with 0 in all {homes} homes, with the same rows as an audit that nothing disturbed; at most the one "
        "step that was not on record yet was computed again",
    )


@pytest.mark.slow
@pytest.mark.fault("kill -9 between tasks and inside one")
def test_only_unfinished_shards_are_computed(command: Make, home: Path, record_fault: Record) -> None:
    """A scan in shards of twenty tokens, killed when some of them are there."""
    audit = command(measures="sticky", EMBAUDIT_TOKENS_PER_SHARD="20")
    running = audit.start()
    wait_for(lambda: len([path for path in staged(home) if path.name.startswith("scan-")]) >= 6)
    # The next shard is on its way.
    time.sleep(0.05)
    running.kill()
    kept = staged(home)
    shards = [path for path in kept if path.name.startswith("scan-")]
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
    assert partial.read_bytes() == cut
    record_fault(
        f"killed with {len(shards)} shards of the scan staged, and another one on its way",
        "all staged shards whole; the file that was being written keeps a hidden name, which nothing reads",
        f"ended with 0: {len(steps(kept)) - len(again)} steps taken over, the same inodes, {len(again)} "
        f"computed again, {len(new)} new",
    )


@pytest.mark.slow
@pytest.mark.fault("kill -9 while an audit publishes")
def test_a_kill_while_the_command_publishes(command: Make, undisturbed: Rows, home: Path, record_fault: Record) -> None:
    """Killed when the warehouse's write-ahead log appears: between the first statement and the last commit."""
    audit = command()
    log = home / "warehouse.duckdb.wal"
    running = audit.start()
    wait_for(lambda: log.exists() or not running.is_running(), pause=0.001)
    assert running.is_running(), "published too fast to be killed in it"
    running.kill()
    kept, status = staged(home), statuses(home / "warehouse.duckdb")
    assert is_whole_or_empty(home / "warehouse.duckdb")
    result = audit.run()
    assert result.returncode == 0, result.stderr
    assert staged(home) == kept
    assert content(home / "warehouse.duckdb") == undisturbed
    record_fault(
        "killed when the warehouse's write-ahead log appeared",
        f"the log says {status[0] if status else 'nothing yet'}; every table whole or empty; all steps staged",
        f"ended with 0: none of {len(kept)} staged files written again, the same rows as undisturbed",
    )
