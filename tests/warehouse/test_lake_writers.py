"""Several processes publish into one DuckLake at once: nothing is lost, nothing is there twice, kills included."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all

from embaudit.system.settings import Lake
from embaudit.warehouse import connect
from embaudit.warehouse import publish as publishing
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.publish import publish
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable

pytestmark = pytest.mark.slow

# A writer that waits longer than this waits for ever.
PATIENCE = 600
EXPECTED = {name: len(rows) for name, rows in plausible_rows().items()}
Start = Callable[..., ForkServerProcess]


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    stage_all(tmp_path / "staged", plausible_rows())
    return tmp_path / "staged"


def require_whole(lake: Lake, audits: set[str]) -> None:
    """Every audit has all its rows once, and content is there once, whoever brought it."""
    with open_reader(lake, 60) as connection:
        found = connection.execute("SELECT audit_id, status FROM audit").fetchall()
        assert sorted(found) == sorted((audit_id, "published") for audit_id in audits)
        for name, table in TABLES.items():
            if name not in EXPECTED:
                continue
            if table.scope == "content":
                assert connection.execute(f"SELECT count(*) FROM {name}").fetchall() == [(EXPECTED[name],)], name
            else:
                counts = dict(connection.execute(f"SELECT audit_id, count(*) FROM {name} GROUP BY 1").fetchall())
                assert counts == dict.fromkeys(audits, EXPECTED[name]), name
        for name in ("measure_run", "expectation_result"):
            each = Counter(row[0] for row in connection.execute(f"SELECT audit_id FROM {name}").fetchall())
            assert set(each) == audits
            assert len(set(each.values())) == 1, name


def context() -> ForkServerContext:
    """Processes that have what a publisher imports loaded already."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["duckdb", "pandas", "pyarrow.parquet", "plausible"])
    return found


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a function in a process of its own; what still runs at the end is killed."""
    started: list[ForkServerProcess] = []

    def begin(function: Callable[..., None], *arguments: Any) -> ForkServerProcess:
        started.append(context().Process(target=function, args=arguments))
        started[-1].start()
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.join()


def publish_all(lake: Lake, staging: Path, audits: list[str]) -> None:
    """Every audit brings rows of its own, and content that the others bring too."""
    paths = sorted(staging.glob("*.parquet"))
    staged = [StagedTable(path.name.rsplit("-", 1)[0], (str(path),)) for path in paths]
    for audit_id in audits:
        counts = publish(lake, 300, audit_record(audit_id), measure_runs(), [expectation()], staged)
        assert counts["token"] == 8, counts


def publish_together(lake: Lake, staging: Path, audits: list[str], together: Barrier) -> None:
    together.wait(PATIENCE)
    publish_all(lake, staging, audits)


class Nothing:
    """The lock of somebody whom no lock stops."""

    def execute(self, sql: str) -> None:
        pass

    def close(self) -> None:
        pass


def publish_without_a_queue(lake: Lake, staging: Path, audits: list[str], together: Barrier) -> None:
    """Whoever asks gets the lock, and both get it at the same time: the row that all writers touch is left."""
    asked = count()

    def try_lock(*_: object) -> Nothing:
        if next(asked) == 0:
            together.wait(PATIENCE)
        return Nothing()

    connect.try_lock = try_lock
    publish_all(lake, staging, audits)


def publish_until(lake: Lake, staging: Path, audit_id: str, state: str, reached: Connection) -> None:
    """Come to a state of publishing, say so, and stay in it."""
    module, name, call = STATES[state]
    original, calls = getattr(module, name), count(1)

    def stopping(*arguments: Any) -> Any:
        found = original(*arguments)
        # Who asked for the queue and did not get it asks again.
        if (name != "try_lock" or found is not None) and next(calls) == call:
            reached.send(state)
            signal.pause()
        return found

    setattr(module, name, stopping)
    publish_all(lake, staging, [audit_id])


# The call whose end is that state: what a writer does there, and what the audit's log says once it is dead.
STATES: dict[str, tuple[Any, str, int]] = {
    "has the queue": (connect, "try_lock", 1),
    "the log is written and not committed": (publishing, "_write_log", 1),
    "some tables are written": (publishing, "write_table", 8),
    "all is written and not committed": (publishing, "replace_rows", 4),
}
SAID = {
    "has the queue": None,
    "the log is written and not committed": None,
    "some tables are written": "checked",
    "all is written and not committed": "checked",
}


def require_done(*processes: ForkServerProcess) -> None:
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0, process


def test_publishers_at_once_lose_and_double_nothing(lake: Lake, staging: Path, start: Start) -> None:
    """The lake does not exist yet; each publishes the shared audit, and once more after its own."""
    names = ("a", "b", "c")
    together = context().Barrier(len(names))
    require_done(
        *[start(publish_together, lake, staging, ["shared", f"own-{name}", "shared"], together) for name in names]
    )
    require_whole(lake, {"shared", *(f"own-{name}" for name in names)})


def test_publishers_past_the_queue_lose_and_double_nothing(lake: Lake, staging: Path, start: Start) -> None:
    # Two that make one lake at the same time need the queue: they are not what this is about.
    with open_writer(lake, 60):
        pass
    together = context().Barrier(2)
    require_done(*[start(publish_without_a_queue, lake, staging, ["shared", f"own-{name}"], together) for name in "ab"])
    require_whole(lake, {"shared", "own-a", "own-b"})


def test_killed_publishers_leave_all_or_nothing_to_the_others(lake: Lake, staging: Path, start: Start) -> None:
    """One that is killed in each state of publishing, while another one publishes whenever it can."""
    steady = start(publish_all, lake, staging, ["shared", "own-steady"] * 2)
    victims = {state: state.replace(" ", "-") for state in STATES}
    for state, audit_id in victims.items():
        require_killed_in(state, lake, staging, audit_id, start)
        # A dead writer's place in the queue is free at once, not at some timeout.
        with open_writer(lake, 60) as connection:
            said = connection.execute("SELECT status FROM audit WHERE audit_id = ?", [audit_id]).fetchall()
        assert said == ([(SAID[state],)] if SAID[state] else []), state
        require_all_or_nothing(lake)
    require_done(steady)
    # One that replaces what is published: its rows stay those that were there.
    require_killed_in("some tables are written", lake, staging, "shared", start)
    require_all_or_nothing(lake)
    # The same call finishes what a kill has left.
    publish_all(lake, staging, ["shared", *victims.values()])
    require_whole(lake, {"shared", "own-steady", *victims.values()})


def require_killed_in(state: str, lake: Lake, staging: Path, audit_id: str, start: Start) -> None:
    here, there = context().Pipe(duplex=False)
    victim = start(publish_until, lake, staging, audit_id, state, there)
    assert here.poll(PATIENCE), f"no publisher came to the state: {state}"
    victim.kill()
    victim.join()
    assert victim.exitcode == -signal.SIGKILL


def require_all_or_nothing(lake: Lake) -> None:
    """Each audit's tables are whole if it is published, and empty if it is only checked."""
    with open_reader(lake, 60) as connection:
        connection.execute("BEGIN TRANSACTION")
        status = dict(connection.execute("SELECT audit_id, status FROM audit").fetchall())
        assert set(status.values()) <= {"published", "checked"}
        for name, expected in EXPECTED.items():
            if TABLES[name].scope == "content":
                assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() in [(0,), (expected,)]
                continue
            counts = dict(connection.execute(f"SELECT audit_id, count(*) FROM {name} GROUP BY 1").fetchall())
            whole = {audit_id: expected for audit_id, state in status.items() if state == "published"}
            assert counts == whole, name
