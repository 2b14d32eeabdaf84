"""A Prefect server that goes away: the audit ends in one paragraph, and nothing that is done is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from commands import CLI
from fault_table import Record
from ports import free_port, start_server, stop_server
from runs import Make, Rows, content, rewritten, staged, staged_files, wait_for

from embaudit.words.errors import CheckFailed
from embaudit_flows.server.temporary import expected_failure

pytestmark = pytest.mark.xdist_group("faults")


class Server:
    """A server of the test's own, with a database of its own, that can be killed."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PREFECT_HOME": str(folder), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        environment.pop("PREFECT_API_URL", None)

        def start(port: int) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-m", "prefect", "server", "start", "--port", str(port), "--no-ui"],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

        self.process, self.port = start_server(start, answers)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def kill(self) -> None:
        stop_server(self.process)


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/api/health", timeout=2).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "prefect")
    yield server
    server.kill()


@pytest.mark.slow
@pytest.mark.fault("Prefect server unreachable mid-run")
def test_a_server_that_is_killed_under_a_running_audit(
    command: Make, undisturbed: Rows, server: Server, home: Path, record_fault: Record
) -> None:
    # Prefect's five tries a call take a minute; one alone fails where the server's own database is busy for a moment.
    running = command(PREFECT_API_URL=server.url, PREFECT_CLIENT_MAX_RETRIES="2").start()
    running.wait_for(lambda: [path for path in staged_files(home) if path.name.startswith("socm_text")])
    server.kill()
    result = running.wait().refused()
    assert "is no longer responding" in result.stderr
    kept = staged(home)
    assert kept
    again = command().run()
    assert again.returncode == 0, again.stderr
    over = rewritten(kept, staged(home))
    assert len({path.parent for path in over}) <= 1
    assert content(home / "warehouse.duckdb") == undisturbed
    record_fault(
        "the running measure went on without progress in the UI; at the next sub-flow exit code 2: "
        + result.paragraph.replace(f":{server.port}", ":4200"),
        f"{len(kept)} staged files, each whole; the published tables",
        f"on another server: ended with 0, {len(kept) - len(over)} of them taken over, the same rows as undisturbed",
    )


@pytest.mark.slow
@pytest.mark.fault("Prefect server unreachable from the start")
def test_a_server_that_never_answers(command: Make, home: Path, record_fault: Record) -> None:
    port = free_port()
    url = f"http://user:canary@127.0.0.1:{port}/api"
    result = command(PREFECT_API_URL=url, PREFECT_CLIENT_MAX_RETRIES="0").run().refused()
    assert "canary" not in result.stdout + result.stderr
    again = command().run()
    assert again.returncode == 0, again.stderr
    record_fault(
        "exit code 2: " + result.paragraph.replace(f":{port}", ":4200"),
        "nothing was begun",
        "on a server that answers: ended with 0",
    )


# A script starts its last command in the background so: SIGINT is ignored, and what it executes inherits that.
BACKGROUND = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from embaudit.cli.main import main; main()"


@pytest.mark.slow
@pytest.mark.fault("Prefect server killed under a worker that is told to end")
def test_a_worker_in_the_background_ends_on_sigterm_without_its_server(
    server: Server, tmp_path: Path, record_fault: Record
) -> None:
    places = {"EMBAUDIT_HOME": str(tmp_path / "home"), "PREFECT_HOME": str(tmp_path / "of-worker")}
    environment = {**os.environ, **places, "PREFECT_API_URL": server.url, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    subprocess.run([*CLI, "setup-server"], env=environment, check=True, timeout=240)
    said = tmp_path / "worker.log"
    with said.open("w") as output:
        worker = subprocess.Popen(
            [sys.executable, "-c", BACKGROUND, "worker"], env=environment, cwd=tmp_path, stdout=output, stderr=output
        )
    try:
        wait_for(lambda: "started!" in said.read_text() or worker.poll() is not None)
        server.kill()
        wait_for(lambda: "Backing off" in said.read_text() or worker.poll() is not None)
        assert worker.poll() is None, said.read_text()
        worker.terminate()
        worker.wait(timeout=300)
    finally:
        worker.kill()
        worker.wait()
    assert "stopped!" in said.read_text()
    assert worker.returncode != -signal.SIGKILL
    record_fault(
        "started by a script in the background (`embaudit worker &`), and backing off from a server that does not "
        "answer, it ended at the first SIGTERM",
        "no process",
        "not needed: a worker has nothing of its own to keep",
    )


def test_what_is_the_server_s_doing_and_what_is_a_bug() -> None:
    def raised(first: Exception) -> Exception:
        try:
            try:
                raise first
            finally:
                raise RuntimeError("while cleaning up")
        except RuntimeError as error:
            return error

    with pytest.raises(httpx.ConnectError) as refused:
        httpx.get("http://127.0.0.1:9/api/health")
    lost = expected_failure(raised(refused.value))
    assert lost is not None
    assert lost.exit_code == 2
    assert "is no longer responding" in lost.happened
    assert "same command again" in lost.next_step
    assert isinstance(expected_failure(raised(CheckFailed("a check failed"))), CheckFailed)
    assert expected_failure(raised(ValueError("a bug"))) is None
