"""A full disk, a warehouse that somebody else has open, Ctrl-C."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_table import Record
from runs import Make, Rows, content, hold, rewritten, rows, staged, wait_for
from small_disk import SmallDisk

from embaudit.warehouse.connect import open_writer


def fill(disk: SmallDisk, leaving: int) -> Path:
    """Something else takes the disk, but for so many bytes."""
    filler = disk.folder / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(disk.folder).free - leaving))
    return filler


@pytest.mark.slow
@pytest.mark.fault("disk full while staging")
def test_a_disk_that_fills_while_staging(
    command: Make, undisturbed: Rows, small_disk: Callable[[int], SmallDisk], record_fault: Record
) -> None:
    disk = small_disk(64)
    home = disk.folder / "home"
    home.mkdir()
    filler = fill(disk, 100_000)
    audit = command(EMBAUDIT_HOME=str(home))
    result = audit.run()
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    assert "disk is full" in result.stderr or "No space left" in result.stderr
    kept = staged(home)
    filler.unlink()
    again = audit.run()
    assert again.returncode == 0, again.stderr
    assert not rewritten(kept, staged(home))
    assert content(home / "warehouse.duckdb") == undisturbed
    record_fault(
        f"exit code 2: {result.paragraph}",
        f"{len(kept)} staged files, each whole",
        "with room: ended with 0, none of them written again, the same rows as undisturbed",
    )


@pytest.mark.slow
@pytest.mark.fault("disk full while publishing")
def test_a_disk_that_fills_while_publishing(
    command: Make, undisturbed: Rows, small_disk: Callable[[int], SmallDisk], tmp_path: Path, record_fault: Record
) -> None:
    """Staging has room of its own; the warehouse's disk holds the empty tables and a few pages more."""
    disk = small_disk(64)
    warehouse = disk.folder / "warehouse.duckdb"
    home = tmp_path / "elsewhere" / "home"
    with open_writer(warehouse, 0):
        pass
    filler = fill(disk, 64_000)
    audit = command("--warehouse", str(warehouse), EMBAUDIT_HOME=str(home))
    result = audit.run()
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    assert "Make room" in result.stderr
    kept = staged(home)
    assert not any(rows(warehouse).values())
    filler.unlink()
    again = audit.run()
    assert again.returncode == 0, again.stderr
    assert staged(home) == kept
    assert content(warehouse) == undisturbed
    record_fault(
        f"exit code 2: {result.paragraph}",
        f"all {len(kept)} staged files; the warehouse opens, and its tables are as empty as before",
        "with room: ended with 0, nothing computed again, the same rows as undisturbed",
    )


@pytest.mark.slow
@pytest.mark.fault("warehouse locked by another process")
def test_a_locked_warehouse(command: Make, undisturbed: Rows, home: Path, record_fault: Record) -> None:
    home.mkdir(parents=True)
    holder = hold(home / "warehouse.duckdb")
    try:
        result = command(EMBAUDIT_LOCK_WAIT_SECONDS="1").run()
    finally:
        holder.kill()
        holder.wait()
    assert result.returncode == 2
    assert "Another process has the warehouse" in result.stderr
    assert "Traceback" not in result.stderr
    kept = staged(home)
    again = command().run()
    assert again.returncode == 0, again.stderr
    assert staged(home) == kept
    assert content(home / "warehouse.duckdb") == undisturbed
    record_fault(
        f"waited as long as EMBAUDIT_LOCK_WAIT_SECONDS says, then exit code 2: {result.paragraph}",
        f"all {len(kept)} staged files; the other program's warehouse",
        "unlocked: ended with 0, nothing computed again, the same rows as undisturbed",
    )


@pytest.mark.slow
@pytest.mark.fault("Ctrl-C")
def test_ctrl_c(command: Make, undisturbed: Rows, home: Path, record_fault: Record) -> None:
    audit = command()
    running = audit.start()
    wait_for(lambda: [path for path in staged(home) if path.name.startswith("socm_pair")])
    running.send(signal.SIGINT)
    result = running.wait()
    assert result.returncode == 130, result.stderr
    assert "Run the same command again" in result.stderr
    assert "Traceback" not in result.stderr
    kept = staged(home)
    again = audit.run()
    assert again.returncode == 0, again.stderr
    taken_over = set(kept) - rewritten(kept, staged(home))
    assert {path.name.split("-")[0] for path in taken_over} >= {"socm_text"}
    assert content(home / "warehouse.duckdb") == undisturbed
    record_fault(
        f"exit code 130: {result.paragraph}",
        f"{len(kept)} staged files",
        f"ended with 0, {len(taken_over)} of them taken over, the same rows as undisturbed",
    )
