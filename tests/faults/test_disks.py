"""A full disk, while files are staged and while tables are published."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_table import Record
from runs import Make, Rows, content, rewritten, rows, staged
from small_disk import SmallDisk

from embaudit.warehouse.connect import open_writer

pytestmark = pytest.mark.xdist_group("faults")


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
    result = audit.run().refused()
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
    result = audit.run().refused()
    assert "Free some space" in result.stderr
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
