"""Audits of a watch as runs of a deployment: a real server, and a real worker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from prefect.client.schemas.objects import FlowRun, State
from test_watch_flow import Put, Watcher, audits, outcomes, watcher  # noqa: F401  (a fixture)

from embaudit.words.errors import ServerError

POOL = "for-watches"
DEPLOYMENT = f"audit/{POOL}"


@pytest.fixture
def deployed(home: Path) -> None:
    """The audit's deployment in a pool of its own."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists

    with get_client(sync_client=True) as client:
        with suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        client.create_deployment(
            client.create_flow_from_name("audit"),
            POOL,
            entrypoint="embaudit_flows.audit.audit",
            work_pool_name=POOL,
            pull_steps=[],
        )


@pytest.fixture
def worker(deployed: None, command_environment: dict[str, str], tmp_path: Path) -> Iterator[None]:
    """The deployment, and a worker that runs what is asked of it."""
    with (tmp_path / "worker.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL],
            env={**command_environment, "PREFECT_WORKER_QUERY_SECONDS": "1", "OMP_NUM_THREADS": "1"},
            cwd=tmp_path,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def runs() -> list[FlowRun]:
    """All runs of the deployment, the newest first."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter
    from prefect.client.schemas.sorting import FlowRunSort

    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(DEPLOYMENT)
        return client.read_flow_runs(
            deployment_filter=DeploymentFilter(id={"any_": [deployment.id]}),  # type: ignore[arg-type]
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        )


def end(run: FlowRun, state: State) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        client.set_flow_run_state(run.id, state, force=True)


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_audits_run_elsewhere_once_and_are_found_again(watcher: Watcher, put: Put) -> None:  # noqa: F811
    for name, seed in (("one", 0), ("two", 1), ("copy-of-two", 1)):
        put(watcher.folder / name, seed)
    entries = "\n".join(f'[[folder]]\npath = "{name}"' for name in ("one", "two", "copy-of-two"))
    watcher.write(entries)
    before = len(runs())
    # Nobody waits: they go on, and the next watch finds them instead of starting others.
    hurried = watcher.watch(deployment=DEPLOYMENT, timeout_seconds=0)
    assert set(outcomes(hurried).values()) == {"running"}
    done = watcher.watch(deployment=DEPLOYMENT, timeout_seconds=1_800)
    assert outcomes(done) == {"one": "audited", "two": "audited", "copy-of-two": "known"}
    assert len(runs()) == before + 2
    assert {row.audit_id for row in done.rows} == {audit_id for audit_id, _ in audits(watcher)}
    assert set(outcomes(watcher.watch(deployment=DEPLOYMENT)).values()) == {"seen"}
    assert len(runs()) == before + 2


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_run_that_failed_is_tried_again_by_the_next_watch(watcher: Watcher, put: Put) -> None:  # noqa: F811
    put(watcher.folder / "model", 0)
    texts = watcher.folder / "texts.txt"
    texts.write_text("The river flows.\n")
    watcher.write('[[folder]]\npath = "model"\nsettings = { corpora = { wikipedia = "texts.txt" } }')
    for _ in range(2):
        failed = watcher.red("Audit failed", deployment=DEPLOYMENT, timeout_seconds=1_800)
        assert "ended as Audit failed" in failed.happened
    texts.write_text("The river flows.\nStars burn.\nBees fly.\nIron rusts.\n")
    assert outcomes(watcher.watch(deployment=DEPLOYMENT, timeout_seconds=1_800)) == {"model": "audited"}


@pytest.mark.usefixtures("deployed")
def test_without_a_worker_runs_wait_are_found_again_and_are_started_anew_where_they_died(
    watcher: Watcher,  # noqa: F811
    put: Put,
) -> None:
    from prefect.states import Completed, Crashed

    put(watcher.folder / "model", 0)
    watcher.write('[[folder]]\npath = "model"')
    before = len(runs())
    for _ in range(2):
        (row,) = watcher.watch(deployment=DEPLOYMENT, timeout_seconds=0).rows
        assert (row.outcome, row.audit_id) == ("running", None)
        assert "has not ended after 0 s; it goes on" in str(row.reason)
    assert len(runs()) == before + 1, "it waits for a worker"

    for count, state in enumerate([Crashed(message="its machine is gone"), Completed()], start=2):
        end(runs()[0], state)
        assert set(outcomes(watcher.watch(deployment=DEPLOYMENT, timeout_seconds=0)).values()) == {"running"}
        assert len(runs()) == before + count, state.name
    assert audits(watcher) == []


@pytest.mark.usefixtures("home")
def test_a_deployment_that_is_not_there_is_said_at_once(watcher: Watcher, put: Put) -> None:  # noqa: F811
    put(watcher.folder / "model", 0)
    watcher.write('[[folder]]\npath = "model"')
    with pytest.raises(ServerError, match="no deployment 'audit/nowhere'"):
        watcher.watch(deployment="audit/nowhere")
