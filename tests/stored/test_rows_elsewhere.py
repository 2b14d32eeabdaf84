"""Every row, encoded by other processes: the same rows and numbers as by one, whatever dies, and each row once."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ports import free_port

from embaudit.api.vectors import run
from embaudit.checkpoint import LoadOptions
from embaudit.comparisons.stored.report import StoredReport
from embaudit.errors import CheckpointError, MeasureError, UsageError
from embaudit.functions.checkpoint import SameCheckpoint
from embaudit.functions.opened import open_function
from embaudit.request import AuditRequest
from embaudit.stores.place import AskedRows

DASK = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs pip install 'embaudit[dask]'")
FOREIGN = np.random.default_rng(3).choice(600, 50, replace=False)
PART = 60
Told = Callable[[int], None]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As a worker that has half of two cores: sums are then the same to the last bit."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def compared(
    tiny_index: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> Callable[..., StoredReport]:
    """Encodes every row of an index of which 50 rows are another's; ``told`` gets how many are done, after each part.

    The index lies in batches of 250 rows, so that parts end with them, too.
    """
    mixed = tiny_index.vectors.copy()
    mixed[FOREIGN] = tiny_index.others[FOREIGN]
    columns = {"id": [f"chunk-{row}" for row in range(600)], "text": tiny_index.texts, "embedding": list(mixed)}
    pq.write_table(pa.table(columns), tmp_path / "index.parquet", row_group_size=250)
    monkeypatch.setattr("embaudit.comparisons.stored.every_row.TOGETHER", PART)
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def compare(workers: int, table: str, told: Told = lambda done: None, **environment: str) -> StoredReport:
        for name, value in {"EMBAUDIT_WORKERS": str(workers), **environment}.items():
            monkeypatch.setenv(name, value)
        done = 0

        def progress(what: str, more: int, total: int | None) -> None:
            nonlocal done
            if what == "rows compared":
                done += more
                told(done)

        request = AuditRequest.of(checkpoint=str(tiny_index.folder), device="cpu")
        index = str(tmp_path / "index.parquet")
        return run(
            request,
            index,
            AskedRows(),
            rows=50,
            table=tmp_path / table,
            with_explanation=False,
            progress=progress,
        )

    return compare


def rows(report: StoredReport) -> tuple[bool, int, int, int]:
    assert report.every_row is not None
    found = report.every_row
    return found.is_whole, found.read, found.compared, found.count


def test_a_pool_that_loses_a_process_and_is_interrupted_finds_every_row_once(
    compared: Callable[..., StoredReport], tmp_path: Path
) -> None:
    killed: list[int | None] = []

    def then(done: int) -> None:
        if done == PART:
            child = multiprocessing.active_children()[0]
            child.kill()
            killed.append(child.pid)
        if done >= 300:
            raise KeyboardInterrupt

    first = rows(compared(2, "part.csv", then))
    assert killed
    assert multiprocessing.active_children() == []
    is_whole, read, _, _ = first
    assert not is_whole
    assert 250 <= read < 600
    again: list[int] = []
    assert rows(compared(1, "elsewhere.csv", again.append)) == (True, 600, 600, 50)
    assert again[-1] == 600 - read
    assert rows(compared(1, "here.csv")) == (True, 600, 600, 50)
    assert (tmp_path / "elsewhere.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assert (tmp_path / "here.csv").read_text().startswith((tmp_path / "part.csv").read_text())
    listed = [int(line.split(",")[0]) for line in (tmp_path / "here.csv").read_text().splitlines()[1:]]
    assert listed == sorted(FOREIGN + 1)
