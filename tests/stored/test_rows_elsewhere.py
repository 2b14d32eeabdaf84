"""Every row, encoded by other processes: the same rows and numbers as by one, whatever dies, and each row once."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import CLI
from hashed_words import HashedWords
from ports import free_port
from worker_processes import alive, children, wait_for

from embaudit.checkpoint import Encoder, LoadOptions
from embaudit.embedders.checkpoint import SameCheckpoint
from embaudit.embedders.opened import open_function
from embaudit.questions.question import Progress
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.questions.vectors.report import StoredReport
from embaudit.steps.workers import _OfCluster
from embaudit.words.errors import CheckpointError, MeasureError, UsageError

DASK = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs pip install 'embaudit[dask]'")
FOREIGN = np.random.default_rng(3).choice(600, 50, replace=False)
PART = 60
Compared = Callable[..., StoredReport]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("embaudit.questions.vectors.every_row.TOGETHER", PART)
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


@pytest.fixture
def compared(tiny_index: Any, home: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Compared:
    """Encodes every row of an index of the tiny checkpoint, of which 50 rows are another's."""
    mixed = tiny_index.vectors.copy()
    mixed[FOREIGN] = tiny_index.others[FOREIGN]
    return comparing(home, mixed, tiny_index.texts, None, tiny_index.folder, monkeypatch)


@pytest.fixture
def compared_in_no_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> Compared:
    """The same for a function that a process opens in no time."""
    texts = [f"the {row} word of {row % 7}" for row in range(600)]
    vectors = HashedWords().encode(texts).vectors
    vectors[FOREIGN] = np.random.default_rng(5).normal(size=(50, 16))
    return comparing(home, vectors, texts, HashedWords(), "hashed words", monkeypatch)


def comparing(
    home: Path, vectors: np.ndarray, texts: list[str], function: Any, name: object, monkeypatch: pytest.MonkeyPatch
) -> Compared:
    """Encodes every row; ``told`` gets how many are done, after each part.

    The index lies in batches of 250 rows, so that parts end with them, too.
    """
    columns = {"id": [f"chunk-{row}" for row in range(600)], "text": texts, "embedding": list(vectors)}
    pq.write_table(pa.table(columns), home / "index.parquet", row_group_size=250)

    def compare(
        workers: int,
        table: str,
        told: Callable[[int], None] = lambda done: None,
        say: Callable[[str], None] = lambda line: None,
        **environment: str,
    ) -> StoredReport:
        for variable, value in {"EMBAUDIT_WORKERS": str(workers), **environment}.items():
            monkeypatch.setenv(variable, value)
        done = 0

        def progress(what: str, more: int, total: int | None) -> None:
            nonlocal done
            if what == "rows compared":
                done += more
                told(done)

        question = VectorsQuestion.of(
            store=home / "index.parquet",
            function=name if function is None else function,
            device="cpu",
            rows=50,
            table=home / table,
            with_explanation=False,
        )
        return cast(StoredReport, question.answer(Progress(say, progress)))

    return compare


def rows(report: StoredReport) -> tuple[bool, int, int, int]:
    assert report.every_row is not None
    found = report.every_row
    return found.is_whole, found.read, found.compared, found.count


def test_a_pool_that_loses_a_process_and_is_interrupted_finds_every_row_once(
    compared_in_no_time: Compared, tmp_path: Path
) -> None:
    every_row_once(compared_in_no_time, tmp_path)


@pytest.mark.slow
def test_a_pool_of_a_checkpoint_does_so_too(compared: Compared, tmp_path: Path) -> None:
    every_row_once(compared, tmp_path)


def every_row_once(compared: Compared, tmp_path: Path) -> None:
    """Two processes, of which one is killed; Ctrl-C; and the same command again."""
    killed: list[int | None] = []

    def then(done: int) -> None:
        if done == PART:
            kill_one(killed)
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


def kill_one(killed: list[int | None]) -> None:
    child = multiprocessing.active_children()[0]
    child.kill()
    killed.append(child.pid)


@pytest.mark.slow
@DASK
def test_three_dask_workers_of_which_one_is_killed_find_every_row_once(compared: Compared, tmp_path: Path) -> None:
    killed: list[int | None] = []
    seen: list[int] = []

    def then(done: int) -> None:
        seen.append(done)
        if done == PART:
            assert len(multiprocessing.active_children()) == 3
            kill_one(killed)

    assert rows(compared(3, "elsewhere.csv", then, EMBAUDIT_RUNNER="dask")) == (True, 600, 600, 50)
    assert killed
    assert seen == sorted(set(seen))
    assert seen[-1] == 600
    assert multiprocessing.active_children() == []
    assert rows(compared(1, "here.csv", EMBAUDIT_RUNNER="process")) == (True, 600, 600, 50)
    assert (tmp_path / "elsewhere.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


@pytest.mark.slow
@DASK
def test_a_cluster_that_loses_its_last_worker_is_named_and_the_same_command_goes_on(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr("embaudit.steps.workers.SECONDS_TO_LOOK", 1.0)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        at = {"EMBAUDIT_RUNNER": "dask", "EMBAUDIT_RUNNER_ADDRESS": cluster.scheduler_address}
        seen: list[int] = []

        def then(done: int) -> None:
            seen.append(done)
            if len(seen) == 1:
                cluster.scale(0)

        with pytest.raises(MeasureError, match="The last worker of the Dask cluster was lost") as lost:
            compared(1, "part.csv", then, **at)
        assert f"What was found in the first {seen[-1]:,} rows is kept" in lost.value.kept
        with pytest.raises(UsageError, match="has no worker"):
            compared(1, "part.csv", **at)
        cluster.scale(1)
        cluster.wait_for_workers(1)
        again: list[int] = []
        assert rows(compared(1, "whole.csv", again.append, **at)) == (True, 600, 600, 50)
        assert again[-1] == 600 - seen[-1]


@pytest.mark.parametrize("own", [None, TimeoutError("the call's own")], ids=["came late", "the call's own"])
def test_a_result_that_comes_as_the_wait_for_it_ends_is_taken(own: TimeoutError | None) -> None:
    class Late:
        def result(self, timeout: float | None = None) -> int:
            if timeout is not None:
                raise TimeoutError("timed out")
            if own:
                raise own
            return 7

        def done(self) -> bool:
            return True

    expected = _OfCluster(None, Late())
    if own is None:
        assert expected.result() == 7
    else:
        with pytest.raises(TimeoutError, match="the call's own"):
            expected.result()


@pytest.mark.slow
def test_a_worker_that_lacks_the_checkpoint_says_which(compared: Compared, tiny_index: Any) -> None:
    hidden = tiny_index.folder.with_name("hidden")
    try:
        with pytest.raises(CheckpointError, match=f"A worker on .* cannot open {tiny_index.folder}: ") as error:
            compared(2, "part.csv", say=lambda line: tiny_index.folder.rename(hidden))
    finally:
        hidden.rename(tiny_index.folder)
    assert "Make the checkpoint available there" in error.value.next_step
    assert rows(compared(2, "whole.csv")) == (True, 600, 600, 50)


def test_a_checkpoint_is_opened_again_as_it_is_here_or_not_at_all(tiny_index: Any) -> None:
    options = LoadOptions(device="cpu", dtype="float32", pooling="cls", max_length=20)
    function = open_function(str(tiny_index.folder), options)
    again = function.again
    assert isinstance(again, SameCheckpoint)
    opened = again()
    assert opened.identity == function.identity
    assert again() is opened
    assert np.array_equal(opened.encode(["a text"]).vectors, function.encode(["a text"]).vectors)
    assert open_function(function, options).again is again
    with pytest.raises(CheckpointError, match=f"A worker on .* has another {tiny_index.folder}"):
        replace(again, checkpoint_id="another")()
    missing = tiny_index.folder.with_name("missing")
    with pytest.raises(CheckpointError, match=f"A worker on .* cannot open {missing}: "):
        replace(again, reference=str(missing))()
    with pytest.raises(UsageError, match=r"A worker on .* no device 'cuda:99'"):
        replace(again, options=replace(options, device="cuda:99"))()


@DASK
def test_a_cluster_that_does_not_answer_is_named_before_anything_is_encoded(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embaudit.steps.workers.SECONDS_TO_ANSWER", 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    said: list[str] = []
    with pytest.raises(UsageError, match=f"No Dask scheduler answers at {address}"):
        compared(1, "part.csv", say=said.append, EMBAUDIT_RUNNER="dask", EMBAUDIT_RUNNER_ADDRESS=address)
    assert not said


def rows_done(home: Path) -> int:
    """Up to which row the command came, by what it keeps."""
    for kept in home.rglob("rows-*.sqlite"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{kept}?mode=ro", uri=True)) as read:
            return int(read.execute("SELECT read FROM progress").fetchone()[0])
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["process", pytest.param("dask", marks=DASK)])
def test_ctrl_c_in_a_terminal_ends_the_command_and_its_workers_and_keeps_what_came_back(
    runner: str, tiny_index: Any, tmp_path: Path
) -> None:
    texts = [f"{text} {copy}" for copy in range(35) for text in tiny_index.texts]
    vectors = Encoder(tiny_index.load()).encode_texts(texts)
    vectors[::2000] = np.random.default_rng(0).normal(size=(11, 32))
    pq.write_table(pa.table({"text": texts, "embedding": list(vectors)}), tmp_path / "index.parquet")
    words = [*CLI, "vectors", str(tiny_index.folder), "index.parquet", "--table", "rows.csv", "--rows", "100"]
    settings = {"EMBAUDIT_HOME": str(tmp_path / "home"), "EMBAUDIT_WORKERS": "2", "EMBAUDIT_RUNNER": runner}
    with (tmp_path / "said").open("w") as output:
        command = subprocess.Popen(
            [*words, "--device", "cpu", "--no-explanation"],
            env={**os.environ, **settings, "OMP_NUM_THREADS": "1"},
            cwd=tmp_path,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            wait_for(lambda: command.poll() is not None or rows_done(tmp_path))
            workers = children(command.pid)
            os.killpg(command.pid, signal.SIGINT)
            assert command.wait(timeout=180) == 130, (tmp_path / "said").read_text()
        finally:
            if command.poll() is None:
                os.killpg(command.pid, signal.SIGKILL)
                command.wait()
    said = (tmp_path / "said").read_text()
    assert "Traceback" not in said
    assert "distributed" not in said
    assert "the same command goes on from there" in " ".join(said.split())
    assert len(workers) == 2
    wait_for(lambda: not any(map(alive, workers)))
    before = rows_done(tmp_path)
    assert 0 < before < len(texts)
    done = subprocess.run(
        [*words, "--device", "cpu", "--no-explanation", "--json"],
        env={**os.environ, **settings, "EMBAUDIT_WORKERS": "3", "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["every_row"]
    assert (found["compared"], found["not_its_own"], found["is_whole"]) == (len(texts), 11, True)
    assert [row["row"] for row in found["rows"]] == list(range(1, len(texts), 2000))
