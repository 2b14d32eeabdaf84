"""Worker processes: a dead one costs its call, errors come back as they were, and none is left at the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from embaudit.steps.elsewhere import WorkerDied, WorkerProcesses
from embaudit.words.errors import CheckpointError

LONG = "x" * 1_000_000


class Strange(Exception):
    def __init__(self, one: object, other: object) -> None:
        super().__init__("cannot be rebuilt from this")


def work(given: tuple[str, Path | str]) -> object:
    """What a worker is asked for, by name."""
    what, more = given
    match what:
        case "pid":
            return os.getpid()
        case "length":
            return len(str(more))
        case "mask":
            return signal.pthread_sigmask(signal.SIG_BLOCK, set())
        case "raise":
            raise CheckpointError("no such checkpoint", kept="all", next_step="name another")
        case "strange":
            raise Strange(1, 2)
        case "bug":
            raise KeyError("where")
        case "first dies":
            with Path(more).open("a") as tries:
                tries.write("x")
            if Path(more).stat().st_size == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return os.getpid()
        case "dies":
            with Path(more).open("a") as tries:
                tries.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        case "waits":
            Path(more).touch()
            threading.Event().wait()
    return None


@pytest.fixture(scope="module")
def two() -> Iterator[WorkerProcesses]:
    with closing(WorkerProcesses(2)) as workers:
        yield workers


def test_a_call_whose_worker_dies_is_computed_again_and_the_others_are_not(
    two: WorkerProcesses, tmp_path: Path
) -> None:
    calls = [two.submit(work, ("first dies", tmp_path / "tries")), *(two.submit(work, ("length", LONG)) for _ in "abc")]
    assert [call.result() for call in calls[1:]] == [len(LONG)] * 3
    assert calls[0].result() != os.getpid()
    assert (tmp_path / "tries").read_text() == "xx"


def test_a_call_that_kills_every_worker_is_given_up(
    two: WorkerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embaudit.steps.elsewhere.TRIES", 2)
    with pytest.raises(WorkerDied):
        two.submit(work, ("dies", tmp_path / "tries")).result()
    assert (tmp_path / "tries").read_text() == "xx"
    assert two.submit(work, ("length", "abc")).result() == 3


def test_errors_come_back_as_they_were(two: WorkerProcesses) -> None:
    with pytest.raises(CheckpointError) as ours:
        two.submit(work, ("raise", "")).result()
    assert (ours.value.kept, ours.value.next_step) == ("all", "name another")
    with pytest.raises(KeyError) as bug:
        two.submit(work, ("bug", "")).result()
    assert "in work" in bug.value.__notes__[0]
    with pytest.raises(RuntimeError, match="Strange: cannot be rebuilt"):
        two.submit(work, ("strange", "")).result()


def test_a_worker_never_gets_ctrl_c_and_the_command_does(two: WorkerProcesses) -> None:
    assert signal.SIGINT in two.submit(work, ("mask", "")).result()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


def test_none_is_left_whatever_it_is_doing(tmp_path: Path) -> None:
    workers = WorkerProcesses(2)
    pid = workers.submit(work, ("pid", "")).result()
    waits = workers.submit(work, ("waits", tmp_path / "is here"))
    never = [workers.submit(work, ("pid", "")) for _ in range(50)]
    while not (tmp_path / "is here").exists():
        time.sleep(0.01)
    workers.close()
    assert not Path(f"/proc/{pid}").exists()
    assert all(call.done() for call in (waits, *never))
