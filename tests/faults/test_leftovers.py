"""kill -9 of a command alone, as the system does for memory: no server or worker of its outlives it.

The other tests kill all that a command has started; here it has no time to end its processes, and nobody else does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import CLI, run_here
from fault_table import Record
from runs import wait_for

from embaudit.cli.doctor import TemporaryServerProcess, temporary_servers

pytestmark = pytest.mark.xdist_group("faults")

Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(tmp_path: Path, tiny_checkpoint: Path, tiny_profile: Path) -> Iterator[Begin]:
    """Starts an audit that no server is named for."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(measures: str, **environment: str) -> subprocess.Popen[bytes]:
        own = {"EMBAUDIT_HOME": str(tmp_path / "home"), "PREFECT_HOME": str(tmp_path / "prefect")}
        words = ["audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", measures]
        with (tmp_path / "output").open("wb") as output:
            begun.append(
                subprocess.Popen(
                    [*CLI, *words],
                    env={**os.environ, "PREFECT_API_URL": "", "HF_HUB_OFFLINE": "1", **own, **environment},
                    cwd=tmp_path,
                    stdout=output,
                    stderr=output,
                )
            )
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def processes() -> dict[int, tuple[int, str]]:
    """Every process that is not dead: its parent and its command line."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=", "-o", "ppid=", "-o", "stat=", "-o", "args="],
        capture_output=True, text=True, errors="replace", check=True,
    )  # fmt: skip
    found = {}
    for line in listed.stdout.splitlines():
        pid, parent, state, arguments = (*line.split(None, 3), "")[:4]
        if not state.startswith("Z"):
            found[int(pid)] = (int(parent), arguments)
    return found


def descendants(pid: int) -> dict[int, str]:
    """What a process has started, and what that has, by command line."""
    living = processes()
    family = {pid}
    while more := {child for child, (parent, _) in living.items() if parent in family} - family:
        family |= more
    return {child: living[child][1] for child in family - {pid} if child in living}


def server_of(process: subprocess.Popen[bytes]) -> TemporaryServerProcess | None:
    assert process.poll() is None, "it ended before its server was seen"
    return next((server for server in temporary_servers() if server.command == process.pid), None)


@pytest.mark.slow
def test_a_killed_audit_takes_its_server_with_it(begin: Begin) -> None:
    """While the server is still starting; the slow test kills one that serves."""
    audit = begin("socm")
    server = wait_for(lambda: server_of(audit), pause=0.05)
    assert not server.is_leftover
    audit.kill()
    audit.wait()
    wait_for(lambda: server.pid not in processes(), pause=0.05)


@pytest.mark.slow
@pytest.mark.fault("kill -9 of an audit alone, not of what it started")
def test_a_killed_audit_takes_its_workers_and_their_server_with_it(
    begin: Begin, tmp_path: Path, record_fault: Record
) -> None:
    workers = {"EMBAUDIT_WORKERS": "2", "EMBAUDIT_TOKENS_PER_SHARD": "20", "OMP_NUM_THREADS": "1"}
    audit = begin("sticky", **workers)

    def is_under_way() -> bool:
        assert audit.poll() is None, (tmp_path / "output").read_text()
        return len(shards(tmp_path)) >= 3

    wait_for(is_under_way)
    family = descendants(audit.pid)
    servers = [
        pid
        for pid, arguments in family.items()
        if "embaudit_flows.server.temporary" in arguments or "uvicorn" in arguments
    ]
    pool = [pid for pid, arguments in family.items() if "spawn_main" in arguments]
    assert len(servers) == 1, family
    assert len(pool) == 2, family
    audit.kill()
    audit.wait()
    wait_for(lambda: not family.keys() & processes().keys(), pause=0.05)
    kept = set(shards(tmp_path))
    again = begin("sticky", **workers)
    assert again.wait(timeout=600) == 0, (tmp_path / "output").read_text()
    assert kept <= set(shards(tmp_path))
    assert not [server for server in temporary_servers() if server.command == again.pid]
    record_fault(
        f"killed alone, with {len(pool)} workers in the middle of shards and a temporary server: all of them ended too",
        "every staged file, whole; no process",
        "ended with 0, and with its server",
    )


def shards(folder: Path) -> list[Path]:
    return list(folder.glob("home/staging/**/moments-*.parquet"))


# A command that is gone at once, and whose server's pipe somebody else still holds open.
ORPHANING = """
import os, subprocess, sys
words = [sys.executable, "-c", "import sys; sys.stdin.read()", "-m", *sys.argv[1:]]
print(subprocess.Popen([*words, "8000", str(os.getpid())], stdin=sys.stdin, stdout=subprocess.DEVNULL).pid)
"""


def test_doctor_names_leftovers_and_what_to_type_and_nobody_else_s_servers(tmp_path: Path) -> None:
    def orphan(*module: str) -> tuple[subprocess.Popen[str], int]:
        parent = subprocess.Popen(
            [sys.executable, "-c", ORPHANING, *module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait()
        return parent, pid

    environment = {**os.environ, "EMBAUDIT_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    ours, left = orphan("embaudit_flows.server.temporary")
    other, not_ours = orphan("uvicorn", "--factory", "prefect.server.api.server:create_app")
    try:
        printed = run_here(("doctor",), environment, tmp_path).stdout
        named = re.findall(r"process (\d+) \(\d+ \w+ old, \d+ MiB\)", printed)
        assert str(left) in named
        assert str(not_ours) not in named
        assert f"kill {' '.join(named)}" in printed
    finally:
        for parent in (ours, other):
            assert parent.stdin is not None
            parent.stdin.close()
    wait_for(lambda: not {left, not_ours} & processes().keys(), pause=0.05)
    assert f"process {left} (" not in run_here(("doctor",), environment, tmp_path).stdout
