"""Prepares a Prefect server for embaudit's deployments: a work pool, a GPU limit, and a way to end dead runs.

All three are found by name, so this can be repeated: the limit and the automation are updated, the work pool is kept.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from embaudit.errors import ServerError
from embaudit.settings import Settings
from embaudit_flows.gpu import GPU_LIMIT

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

WORK_POOL = "embaudit"
ZOMBIES = "embaudit: runs without a heartbeat have crashed"
# Three heartbeats: prefect.yaml sets their interval to thirty seconds.
SILENCE = timedelta(seconds=90)


def set_up_server(gpu_slots: int) -> list[str]:
    """Create the work pool, and create or update the concurrency limit and the automation; returns a line about each.

    Args:
        gpu_slots: number of measures that may use GPUs at the same time, across all workers.

    Raises:
        ServerError: if no server is configured, or it does not answer.
    """
    import httpx
    from prefect.client.orchestration import get_client

    url = require_server()
    try:
        with get_client(sync_client=True) as client:
            return [
                _work_pool(client),
                _gpu_limit(client, gpu_slots),
                _zombie_automation(client),
            ]
    except (httpx.HTTPError, RuntimeError) as error:
        raise ServerError(
            f"The Prefect server {url} rejected the request ({type(error).__name__}: {error}).",
            kept="What it did before that is kept; the command may be run again.",
            next_step="Start it: prefect server start",
        ) from error


def require_server() -> str:
    """The server that runs are reported to, from the environment or Prefect's profile.

    Raises:
        ServerError: if none is configured.
    """
    from prefect.settings import PREFECT_API_URL

    url = PREFECT_API_URL.value()
    if not url:
        raise ServerError(
            "No Prefect server is configured.",
            kept="Nothing was changed.",
            next_step="Start one and name it: prefect server start; then "
            "prefect config set PREFECT_API_URL=http://127.0.0.1:4200/api",
        )
    return str(url)


def require_lasting_home() -> None:
    """Refuse to start a deployed run whose results would land in a temporary folder of its worker and be lost.

    Raises:
        ServerError: if the worker was started without an absolute ``EMBAUDIT_HOME``.
    """
    from prefect.runtime import deployment

    if deployment.id and not Settings().home.expanduser().is_absolute():
        raise ServerError(
            "This worker has no EMBAUDIT_HOME, and its runs begin in temporary folders: results would be deleted with "
            "them.",
            kept="Nothing was computed.",
            next_step="Start it with: embaudit worker (or set EMBAUDIT_HOME to an absolute path).",
        )


def _work_pool(client: SyncPrefectClient) -> str:
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound
    from prefect.workers.process import ProcessWorker

    try:
        pool = client.read_work_pool(WORK_POOL)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        pool = client.create_work_pool(WorkPoolCreate(name=WORK_POOL, type="process", base_job_template=template))
    return f"work pool {pool.name}, type {pool.type}"


def _gpu_limit(client: SyncPrefectClient, slots: int) -> str:
    client.upsert_global_concurrency_limit_by_name(name=GPU_LIMIT, limit=slots)
    return f"concurrency limit {GPU_LIMIT}: {slots} measure{'s' * (slots != 1)} on a GPU at a time"


def _zombie_automation(client: SyncPrefectClient) -> str:
    """Ends runs whose heartbeats have stopped: if a machine dies, nothing else would ever end its run."""
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    ends = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}
    automation = AutomationCore(
        name=ZOMBIES,
        description="Marks a run as crashed when its heartbeats stop, so that a new one can take its place.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *ends},
            match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=SILENCE,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                message="No heartbeat: its process or machine has died. The same audit continues where it stopped.",
            )
        ],
    )
    known = client.read_automations_by_name(ZOMBIES)
    for old in known[:1]:
        client.update_automation(old.id, automation)
    if not known:
        client.create_automation(automation)
    return f"automation: no heartbeat for {SILENCE.seconds} s = crashed"
