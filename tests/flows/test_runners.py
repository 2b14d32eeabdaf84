"""Shards on other processes: the same bits, workers that die, Ctrl-C in a terminal, clusters that are not there."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from commands import CLI
from ports import free_port
from worker_processes import alive, children, wait_for

from embaudit.steps.workers import gpu_of, threads_of
from embaudit.words.errors import MeasureError, UsageError
from embaudit_flows.maintain import maintain
from embaudit_flows.measure import computing_elsewhere, pooled

# Many small shards, and one thread everywhere: sums are then the same to the last bit.
SHARDS = {
    "EMBAUDIT_PAIRS_PER_SHARD": "100",
    "EMBAUDIT_TOKENS_PER_SHARD": "40",
    "OMP_NUM_THREADS": "1",
    "EMBAUDIT_WORKERS": "2",
}
DASK = pytest.mark.skipif(importlib.util.find_spec("prefect_dask") is None, reason="needs pip install 'embaudit[dask]'")


def staged(home: Path) -> dict[str, Path]:
    """Staged files of the measures; the record of a corpus holds the moment of its reading, and so its checks'
    key does."""
    folder = home / "staging"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.parquet")}
    return {name: path for name, path in files.items() if "/corpus-" not in name and "/checks-" not in name}


@pytest.fixture
def start(command_environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command in a session of its own, as a terminal does; what is left of it is killed at the end."""
    running: list[subprocess.Popen[str]] = []

    def begin(*command: str, **environment: str) -> subprocess.Popen[str]:
        # Files, not pipes: a pipe that a stopped worker holds open would never end.
        output = (tmp_path / f"output-{len(running)}").open("w+")
        running.append(
            subprocess.Popen(
                command,
                env={**command_environment, **SHARDS, **environment},
                cwd=tmp_path,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        )
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None or children(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def said(tmp_path: Path, number: int = 0) -> str:
    return (tmp_path / f"output-{number}").read_text()


@pytest.fixture(scope="module")
def alone(
    prefect_api: str, tiny_checkpoint: Path, tiny_profile: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """What one process stages: every runner is to stage the same bits."""
    home = tmp_path_factory.mktemp("alone") / "home"
    here = {"EMBAUDIT_HOME": str(home), "PREFECT_API_URL": prefect_api, "HF_HUB_OFFLINE": "1"}
    words = audit(tiny_checkpoint, tiny_profile, "sticky,socm")
    environment = {**os.environ, **here, **SHARDS, "EMBAUDIT_WORKERS": "1"}
    result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    files = staged(home)
    for table, fewest in (("moments-", 5), ("socm_pair-", 4)):
        assert sum(table in name for name in files) >= fewest, table
    return files


def audit(checkpoint: Path, profile: Path, measures: str) -> list[str]:
    return [*CLI, "audit", str(checkpoint), "--profile", str(profile), "--measures", measures]


def require_same_bits(files: dict[str, Path], alone: dict[str, Path]) -> None:
    assert [name for name in files if not pq.read_table(files[name]).equals(pq.read_table(alone[name]))] == []


def interrupt(process: subprocess.Popen[str], home: Path, tmp_path: Path, number: int) -> None:
    """Ctrl-C in a terminal: to the command and its workers, once these have staged a shard of the scan more."""
    before = len(list(home.rglob("moments-*.parquet")))
    wait_for(lambda: children(process.pid) and len(list(home.rglob("moments-*.parquet"))) > before)
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=180) == 130, said(tmp_path, number)
    assert "Run the same command again" in said(tmp_path, number)
    assert "Traceback" not in said(tmp_path, number)
    wait_for(lambda: not [pid for pid in workers if Path(f"/proc/{pid}/cmdline").is_file() and alive(pid)])


def finish(process: subprocess.Popen[str], tmp_path: Path, number: int) -> None:
    assert process.wait(timeout=600) == 0, said(tmp_path, number)
    assert "Traceback" not in said(tmp_path, number)
    assert "distributed" not in said(tmp_path, number)


@pytest.mark.slow
def test_a_pool_that_loses_a_process_and_is_interrupted_stages_the_same_bits_in_the_end(
    start: Callable[..., subprocess.Popen[str]],
    home: Path,
    tmp_path: Path,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    alone: dict[str, Path],
) -> None:
    command = audit(tiny_checkpoint, tiny_profile, "sticky,socm")
    process = start(*command, EMBAUDIT_RUNNER="process")
    wait_for(lambda: children(process.pid) and len(list(home.rglob("moments-*.parquet"))) > 1)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    assert process.wait(timeout=180) == 2, said(tmp_path)
    assert "A worker process died" in said(tmp_path)
    assert "Run the same command again" in said(tmp_path)
    assert "Traceback" not in said(tmp_path)
    kept = {name: path.stat().st_ino for name, path in staged(home).items() if "audit/" not in name}
    interrupt(start(*command, EMBAUDIT_RUNNER="process"), home, tmp_path, 1)
    finish(start(*command, EMBAUDIT_RUNNER="process"), tmp_path, 2)
    assert {name: staged(home)[name].stat().st_ino for name in kept} == kept
    assert staged(home).keys() == alone.keys()
    require_same_bits(staged(home), alone)


@pytest.mark.slow
@DASK
def test_a_dask_that_is_interrupted_stages_the_same_bits_in_the_end(
    start: Callable[..., subprocess.Popen[str]],
    home: Path,
    tmp_path: Path,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    alone: dict[str, Path],
) -> None:
    command = audit(tiny_checkpoint, tiny_profile, "sticky,socm")
    interrupt(start(*command, EMBAUDIT_RUNNER="dask"), home, tmp_path, 0)
    finish(start(*command, EMBAUDIT_RUNNER="dask"), tmp_path, 1)
    assert staged(home).keys() == alone.keys()
    require_same_bits(staged(home), alone)


@pytest.mark.slow
@DASK
def test_a_cluster_loses_a_worker_in_the_middle_of_a_shard_and_the_audit_does_not(
    start: Callable[..., subprocess.Popen[str]],
    home: Path,
    tmp_path: Path,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    alone: dict[str, Path],
) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    dask = str(Path(sys.executable).parent / "dask")
    start(dask, "scheduler", "--port", address.rpartition(":")[2], "--no-dashboard")
    # Workers with a home of their own, as on other machines; the staging is what they share.
    elsewhere = {"EMBAUDIT_HOME": str(tmp_path / "elsewhere"), "EMBAUDIT_WORKERS": "1"}
    command = (dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--name")
    workers = [start(*command, name, **elsewhere) for name in ("lives", "dies")]
    wait_for(lambda: all("Registered to" in said(tmp_path, number) for number in (1, 2)))
    setting = {"EMBAUDIT_RUNNER": "dask", "EMBAUDIT_RUNNER_ADDRESS": address}
    # A worker that stands still is given its shards all the same: these are certain to be under way when it dies.
    wait_for(lambda: children(workers[1].pid))
    (stopped,) = children(workers[1].pid)
    os.kill(stopped, signal.SIGSTOP)
    process = start(*audit(tiny_checkpoint, tiny_profile, "sticky"), **setting)
    wait_for(lambda: list(home.rglob("moments-*.parquet")) and is_given_a_shard("dies", address))
    assert process.poll() is None
    os.killpg(workers[1].pid, signal.SIGKILL)
    assert process.wait(timeout=600) == 0, said(tmp_path, 3)
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT status FROM audit").fetchall() == [("published",)]
    assert not (tmp_path / "elsewhere").exists()
    # The row that lists an audit's corpora is another one for another choice of measures.
    require_same_bits({name: path for name, path in staged(home).items() if not name.startswith("audit/")}, alone)


def is_given_a_shard(worker: str, address: str) -> bool:
    """By what the scheduler says."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        given = client.processing()
        return any(
            given.get(place) for place, one in client.scheduler_info()["workers"].items() if one["name"] == worker
        )


@DASK
def test_a_cluster_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    monkeypatch.setenv("EMBAUDIT_RUNNER", "dask")
    monkeypatch.setenv("EMBAUDIT_RUNNER_ADDRESS", address)
    monkeypatch.setattr("embaudit.steps.workers.SECONDS_TO_ANSWER", 1)
    with pytest.raises(UsageError, match=f"No Dask scheduler answers at {address}"):
        pooled(maintain)


def test_one_process_leaves_a_flow_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBAUDIT_WORKERS", "1")
    assert pooled(maintain) is maintain
    monkeypatch.setenv("EMBAUDIT_WORKERS", "2")
    assert pooled(maintain).task_runner._max_workers == 2


def test_an_error_of_a_task_stays_what_it_is() -> None:
    with pytest.raises(UsageError, match="no such"), computing_elsewhere("pairs"):
        raise UsageError("no such token")
    from concurrent.futures.process import BrokenProcessPool

    with pytest.raises(MeasureError, match=r"died .* while it computed pairs"), computing_elsewhere("pairs"):
        raise BrokenProcessPool("terminated abruptly")


SETTLED = """
import multiprocessing, os

def look(queue):
    import torch
    from embaudit.steps.workers import settle
    settle("cuda")
    first = os.environ["CUDA_VISIBLE_DEVICES"]
    settle("cuda")
    queue.put((first, os.environ["CUDA_VISIBLE_DEVICES"], torch.get_num_threads()))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    for _ in range(3):
        child = context.Process(target=look, args=(queue,))
        child.start()
        print(*queue.get())
        child.join()
    from embaudit.steps.workers import settle
    settle("cuda")
    print(os.environ["CUDA_VISIBLE_DEVICES"])
"""


@pytest.mark.slow
def test_a_worker_process_keeps_to_one_gpu_and_its_share_of_the_cores(tmp_path: Path) -> None:
    script = tmp_path / "settled.py"
    script.write_text(SETTLED)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "4,GPU-7f", "EMBAUDIT_WORKERS": "2"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    share = str(threads_of(os.cpu_count() or 1, 2))
    lines = [line.split() for line in done.stdout.splitlines()]
    # By turns, the same at the second load; and the process that a user started sees what it saw.
    assert lines == [["4", "4", share], ["GPU-7f", "GPU-7f", share], ["4", "4", share], ["4,GPU-7f"]]


def test_gpus_go_by_turns_and_cores_are_shared() -> None:
    assert [gpu_of(number, ["0", "3"]) for number in range(4)] == ["0", "3", "0", "3"]
    assert [threads_of(16, workers) for workers in (1, 3, 32)] == [16, 5, 1]
