"""Staged files: complete under their name or absent, whatever happens while they are written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_processes import Start

from embaudit.steps.staging.stage import (
    ROWS_PER_GROUP,
    read_batches,
    read_rows,
    staged_path,
    write_columns,
    write_rows,
)
from embaudit.words.errors import MeasureError, StorageError

NUMBERS = {"name": "string", "value": "float64"}


@dataclass(frozen=True)
class Point:
    name: str
    value: float | None


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def test_a_path_says_measure_key_table_and_shard(tmp_path: Path) -> None:
    path = staged_path(tmp_path, "socm", "abc", "socm_pair", 7)
    assert path == str(tmp_path / "socm" / "abc" / "socm_pair-00007.parquet")
    remote = staged_path("s3://bucket/prefix", "socm", "abc", "socm_pair", 7)
    assert remote == "s3://bucket/prefix/socm/abc/socm_pair-00007.parquet"


def test_dataclasses_and_mappings_come_back_as_they_were(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    assert write_rows(tmp_path / "a.parquet", [Point("x", 1.5), {"name": "y", "value": None}], NUMBERS) == 2
    write_rows(tmp_path / "b.parquet", [{"at": now, "id": 3}], {"at": "instant", "id": "int32"})
    assert read_rows([tmp_path / "a.parquet"]) == [{"name": "x", "value": 1.5}, {"name": "y", "value": None}]
    assert read_rows([tmp_path / "b.parquet"]) == [{"at": now, "id": 3}]


def test_a_schema_types_columns_that_are_all_null_and_tables_without_rows(tmp_path: Path) -> None:
    write_rows(tmp_path / "null.parquet", [{"name": None, "value": None}], NUMBERS)
    write_rows(tmp_path / "none.parquet", [], NUMBERS)
    write_columns(tmp_path / "blocks.parquet", [], NUMBERS)
    for name in ("null", "none", "blocks"):
        schema = pq.read_schema(tmp_path / f"{name}.parquet")
        assert schema.types == [pa.string(), pa.float64()], name
    assert read_rows([tmp_path / "none.parquet", tmp_path / "blocks.parquet"]) == []


def test_blocks_may_differ_in_what_is_null(tmp_path: Path) -> None:
    blocks = [{"name": ["a"], "value": [None]}, {"name": [None], "value": np.array([2.0])}]
    assert write_columns(tmp_path / "a.parquet", blocks, NUMBERS) == 2
    assert read_rows([tmp_path / "a.parquet"]) == [{"name": "a", "value": None}, {"name": None, "value": 2.0}]


def test_rows_without_a_schema_must_be_some(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without rows or a schema"):
        write_rows(tmp_path / "a.parquet", [])
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("row", [{"name": "x", "valeu": 1.0}, {"name": "x"}, {"name": "x", "value": 1.0, "more": 2}])
def test_a_mistyped_column_is_not_dropped_in_silence(tmp_path: Path, row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"differ: \[.*(value|more)"):
        write_rows(tmp_path / "a.parquet", [{"name": "ok", "value": 0.0}, row], NUMBERS)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_refused_and_named(tmp_path: Path, bad: float) -> None:
    rows = [{"name": "good", "value": 1.0}, {"name": "undefined", "value": None}, {"name": "bad", "value": bad}]
    with pytest.raises(MeasureError) as caught:
        write_rows(tmp_path / "a.parquet", rows, NUMBERS)
    assert f"value is {bad}" in str(caught.value)
    assert "{'name': 'bad'}" in str(caught.value)
    assert leftovers(tmp_path) == []


def test_nan_in_a_late_block_leaves_no_file(tmp_path: Path) -> None:
    def blocks() -> Iterator[dict[str, object]]:
        for block in range(3):
            value = np.zeros(ROWS_PER_GROUP)
            value[5] = np.nan if block == 2 else 0
            yield {"id": np.arange(ROWS_PER_GROUP) + block * ROWS_PER_GROUP, "value": value}

    with pytest.raises(MeasureError, match=rf"value is nan in the row {{'id': {2 * ROWS_PER_GROUP + 5}}}"):
        write_columns(tmp_path / "a.parquet", blocks(), {"id": "int64", "value": "float64"})
    assert leftovers(tmp_path) == []


def test_the_row_of_a_wide_table_is_named_by_its_keys_alone(tmp_path: Path) -> None:
    wide = {f"point_{i}": 0.0 for i in range(250)}
    with pytest.raises(MeasureError) as caught:
        write_rows(tmp_path / "a.parquet", [{"token_id": 7, **wide, "point_249": float("nan")}])
    assert "{'token_id': 7}" in caught.value.happened
    assert len(caught.value.happened) < 200


def test_an_interrupt_between_blocks_leaves_no_file(tmp_path: Path) -> None:
    def blocks() -> Iterator[dict[str, object]]:
        yield {"name": ["a"], "value": [1.0]}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_columns(tmp_path / "a.parquet", blocks(), NUMBERS)
    assert leftovers(tmp_path) == []


SLOW_WRITER = """
import sys
from pathlib import Path
import numpy as np
from embaudit.steps.staging.stage import ROWS_PER_GROUP, write_columns

def blocks():
    for block in range(3):
        yield {"value": np.random.default_rng(block).random(ROWS_PER_GROUP)}
        print("block", flush=True)
    sys.stdin.read()

write_columns(Path(sys.argv[1]), blocks(), {"value": "float64"})
"""


def test_kill_9_in_the_middle_leaves_nothing_under_the_name(tmp_path: Path, process: Start) -> None:
    path = tmp_path / "staging" / "value-00000.parquet"
    writer = process(SLOW_WRITER, path)
    for _ in range(3):
        writer.says("block")
    writer.kill_9()
    partial = leftovers(path.parent)
    assert not path.exists()
    assert len(partial) == 1
    assert partial[0].startswith(".")
    assert write_columns(path, [{"value": [1.0]}], {"value": "float64"}) == 1
    assert read_rows([path]) == [{"value": 1.0}]


def test_a_full_disk_is_one_clear_error_and_nothing_half_written(tmp_path: Path, small_disk: Callable) -> None:
    disk = small_disk(1)
    path = disk.folder / "staging" / "value-00000.parquet"
    noise = ({"value": np.random.default_rng(i).random(ROWS_PER_GROUP)} for i in range(8))
    with pytest.raises(StorageError) as caught:
        write_columns(path, noise, {"value": "float64"})
    assert "the disk is full" in caught.value.happened
    assert str(path) in caught.value.happened
    assert "run the same command again" in caught.value.next_step
    assert leftovers(disk.folder) == []


def test_a_file_size_limit_is_a_storage_error_too(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from embaudit.words.errors import StorageError
from embaudit.steps.staging.stage import write_columns
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_columns(Path(sys.argv[1]), [{"value": np.random.default_rng(0).random(500_000)}], {"value": "float64"})
except StorageError as error:
    print(error.happened)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.parquet")], capture_output=True, text=True, check=True
    )
    assert "Cannot write" in done.stdout
    assert leftovers(tmp_path) == []


def test_a_staging_folder_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "staging").write_text("not a folder")
    with pytest.raises(StorageError, match="Cannot write"):
        write_rows(tmp_path / "staging" / "key" / "a.parquet", [Point("x", 1.0)], NUMBERS)


@pytest.mark.slow
def test_many_blocks_stream_through_bounded_memory(process: Start) -> None:
    """320 MB of numbers; the process grows by the one row group that is waiting."""
    code = """
import sys
from pathlib import Path
import numpy as np
from embaudit.system.processors import peak_memory
from embaudit.steps.staging.stage import write_columns
schema = {"first": "int32", "second": "int32", "d_mu": "float64", "d_sigma": "float64", "socm": "float64"}
def blocks(count):
    values = np.arange(20_000)
    for _ in range(count):
        yield {name: values / 7 if kind == "float64" else values for name, kind in schema.items()}
write_columns(Path("warm.parquet"), blocks(30), schema)
before = peak_memory()
rows = write_columns(Path("a.parquet"), blocks(500), schema)
print(rows, peak_memory() - before)
"""
    output, errors = process(code).communicate()
    assert output, errors
    rows, grown = map(int, output.split())
    assert rows == 10_000_000
    assert grown < 60_000_000


def test_small_blocks_are_gathered_into_large_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    blocks = ({"value": np.full(1_000, i, dtype=np.float64)} for i in range(600))
    assert write_columns(path, blocks, {"value": "float64"}) == 600_000
    assert pq.read_metadata(path).num_row_groups == 3
    batches = list(read_batches(path, ["value"]))
    assert max(batch.num_rows for batch in batches) <= ROWS_PER_GROUP + 1_000
    values = np.concatenate([batch.column("value").to_numpy() for batch in batches])
    assert np.array_equal(values, np.repeat(np.arange(600), 1_000))


def test_a_folder_called_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    path = tmp_path / "team=nlp" / "a.parquet"
    write_rows(path, [Point("x", 1.0)], NUMBERS)
    assert read_rows([path]) == [{"name": "x", "value": 1.0}]
