"""Parts in order, wherever they are computed: few on their way, no more workers than parts, none for a single one."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

import pytest

from embaudit.steps.elsewhere import AHEAD, WorkerDied, in_order, lost_workers


def where(part: int) -> tuple[int, int]:
    return part, os.getpid()


@pytest.mark.parametrize(
    ("workers", "parts", "most"), [(1, 5, 0), (8, 0, 0), (8, 1, 0), (8, 2, 2), (2, 20, 2)], ids=str
)
def test_parts_come_in_order_from_no_more_workers_than_there_are_parts(
    workers: int, parts: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBAUDIT_WORKERS", str(workers))
    read = 0

    def reading() -> Iterator[int]:
        nonlocal read
        for part in range(parts):
            read += 1
            yield part

    seen, processes = [], set()
    with closing(in_order(reading(), lambda part: 10 * part, here=where, elsewhere=where)) as found:
        for part, (computed, pid) in found:
            assert computed == 10 * part
            assert len(multiprocessing.active_children()) <= most
            assert read <= part + 1 + AHEAD * most
            seen.append(part)
            processes.add(pid)
    assert seen == list(range(parts))
    assert (processes == {os.getpid()}) == (parts > 0 and most == 0)
    assert not multiprocessing.active_children()


def test_what_no_worker_can_compute_is_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBAUDIT_WORKERS", "2")
    found = in_order(range(5), lambda part: part, here=where, elsewhere=None)
    assert [part for part, (_, pid) in found if pid == os.getpid()] == list(range(5))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (WorkerDied(), "A worker process died"),
        (BrokenProcessPool(), "A worker process died"),
        (type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})(), "A worker process died"),
        (type("CommClosedError", (OSError,), {"__module__": "distributed.comm.core"})(), "The Dask cluster was lost"),
        (CancelledError(), "The Dask cluster was lost"),
        (ValueError("of a task"), None),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_lost_worker_is_told_from_an_error_of_what_it_computed(error: Exception, said: str | None) -> None:
    lost = lost_workers(error, "rows", "Much is kept.")
    assert (lost is None) == (said is None)
    if lost is not None:
        assert str(said) in lost.happened
        assert (lost.kept, "Run the same command again" in lost.next_step) == ("Much is kept.", True)
