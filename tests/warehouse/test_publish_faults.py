"""Publishing under kill -9 and on a full disk: afterwards all of an audit's rows are there, or none."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from own_processes import Start
from plausible import SCHEMAS, audit_record, measure_runs, plausible_rows, stage_all
from warehouse_rows import FEW, rows

from embaudit.steps.staging.stage import write_columns
from embaudit.warehouse.publish import publish
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable
from embaudit.words.errors import StorageError

PAIRS = 600_000
ROOM_LEFT = 4_000_000
PUBLISHER = """
import importlib, pickle, sys
from pathlib import Path

publishing = importlib.import_module("embaudit.warehouse.publish")
real_write, real_replace = publishing.write_table, publishing.replace_rows

def wait_if(moment):
    if moment == sys.argv[3]:
        print("here", flush=True)
        sys.stdin.read()

def write_table(connection, audit_id, staged):
    count = real_write(connection, audit_id, staged)
    wait_if(f"behind {staged.table}")
    return count

def replace_rows(connection, table, rows):
    real_replace(connection, table, rows)
    if table == "audit":
        wait_if(f"before the commit of {rows[0]['status']}")

publishing.write_table, publishing.replace_rows = write_table, replace_rows
publishing.publish(Path(sys.argv[1]), 60, *pickle.loads(Path(sys.argv[2]).read_bytes()))
wait_if("behind the commit")
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[StagedTable]]:
    """An audit with 600 000 pairs: too large for the room that is left."""
    folder = tmp_path_factory.mktemp("large")
    staged = [table for table in stage_all(folder, plausible_rows()) if table.table != "socm_pair"]
    values = np.random.default_rng(0).random((3, PAIRS))
    path = folder / "socm_pair-00000.parquet"
    columns = {"first": np.arange(PAIRS), "second": np.arange(PAIRS) + 1}
    block = {"corpus": ["wikipedia"] * PAIRS, **columns, **dict(zip(("d_mu", "d_sigma", "socm"), values, strict=True))}
    write_columns(path, [block], SCHEMAS["socm_pair"])
    return folder, [*staged, StagedTable("socm_pair", (str(path),))]


def counts(path: Path, audit_id: str) -> dict[str, int]:
    """Rows of one audit by table, and all rows of the tables that belong to none."""
    of_audit = {
        name: f"WHERE audit_id = '{audit_id}'" if table.scope == "audit" else "" for name, table in TABLES.items()
    }
    (found,) = rows(path, "SELECT " + ", ".join(f"(SELECT count(*) FROM {one} {of_audit[one]})" for one in TABLES))
    return dict(zip(TABLES, found, strict=True))


def log_status(path: Path, audit_id: str) -> str | None:
    return next((one for (one,) in rows(path, "SELECT status FROM audit WHERE audit_id = ?", audit_id)), None)


EXPECTED = {name: len(found) for name, found in plausible_rows().items()}
EXPECTED_OF_FEW = {name: EXPECTED[name] for name in FEW}
NONE = {name: 0 if TABLES[name].scope == "audit" else count for name, count in EXPECTED.items()}
ALL = {**EXPECTED, "socm_pair": PAIRS}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "status"),
    [
        pytest.param("before the commit of checked", None, marks=pytest.mark.slow),
        pytest.param("behind socm_pair", "checked", marks=pytest.mark.slow),
        ("before the commit of published", "checked"),
        pytest.param("behind the commit", "published", marks=pytest.mark.slow),
    ],
)
def test_kill_9_while_publishing_leaves_all_or_nothing(
    published: Path,
    tmp_path: Path,
    few: list[StagedTable],
    process: Start,
    moment: str,
    status: str | None,
) -> None:
    (tmp_path / "given").write_bytes(pickle.dumps((audit_record("a2"), measure_runs(), [], few)))
    publisher = process(PUBLISHER, published, tmp_path / "given", moment)
    publisher.says("here")
    publisher.kill_9()
    assert counts(published, "a2") == NONE | (EXPECTED_OF_FEW if status == "published" else {})
    assert log_status(published, "a2") == status
    assert counts(published, "a1") == EXPECTED
    # The same call finishes the job, and doubles nothing.
    assert publish(published, 0, audit_record("a2"), measure_runs(), [], few) == EXPECTED_OF_FEW
    assert counts(published, "a2") == NONE | EXPECTED_OF_FEW
    assert log_status(published, "a2") == "published"


@pytest.mark.slow
def test_a_full_disk_while_publishing_leaves_the_warehouse_usable(
    tmp_path: Path, large: tuple[Path, list[StagedTable]], small_disk: Callable
) -> None:
    _, staged = large
    disk = small_disk(256)
    path = disk.folder / "warehouse.duckdb"
    publish(path, 0, audit_record("a1"), measure_runs(), [], stage_all(tmp_path / "a1", plausible_rows()))
    # Something else takes the disk, but for a few megabytes.
    filler = disk.folder / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(disk.folder).free - ROOM_LEFT))
    for _ in range(2):
        with pytest.raises(StorageError, match="Cannot write the warehouse") as caught:
            publish(path, 0, audit_record("a2"), measure_runs(), [], staged)
        assert caught.value.next_step.startswith("Free some space")
        assert "are unchanged" in caught.value.kept
        assert counts(path, "a1") == EXPECTED
        assert counts(path, "a2") == NONE
        assert log_status(path, "a1") == "published"
        assert log_status(path, "a2") in (None, "checked")
    filler.unlink()
    assert publish(path, 0, audit_record("a2"), measure_runs(), [], staged) == ALL
    assert counts(path, "a2") == ALL
    assert counts(path, "a1") == EXPECTED


def test_a_disk_that_is_full_before_the_first_byte(
    tmp_path: Path, small_disk: Callable, few: list[StagedTable]
) -> None:
    disk = small_disk(1)
    filler = disk.folder / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(2_000_000))
    path = disk.folder / "warehouse.duckdb"
    with pytest.raises(StorageError, match="Cannot write the warehouse"):
        publish(path, 0, audit_record(), measure_runs(), [], few)
    filler.unlink()
    disk.grow(64)
    assert publish(path, 0, audit_record(), measure_runs(), [], few) == EXPECTED_OF_FEW
