"""Prepares a Prefect server for embaudit's deployments: a work pool, a GPU limit, automations, and whom to call.

All are found by name, so this can be repeated: the limit and the automations are updated, the work pool is kept.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from embaudit.system.settings import Settings
from embaudit.words.errors import ServerError
from embaudit_flows.automations import put_automations
from embaudit_flows.gpu import GPU_LIMIT
from embaudit_flows.notify import VARIABLE, Notifier

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

WORK_POOL = "embaudit"


def set_up_server(gpu_slots: int, notify: str | None = None, night: timedelta = timedelta(hours=25)) -> list[str]:
    """Create the work pool, and create or update the concurrency limit and the automations; returns a line about each.

    Args:
        gpu_slots: number of measures that may use GPUs at the same time, across all workers.
        notify: the notification block through which people are called; None leaves what was set up before.
        night: how long there may be no night before they are.

    Raises:
        ServerError: if no server is configured, it does not answer, or has no such block.
    """
    import httpx
    from prefect.client.orchestration import get_client

    url = require_server()
    try:
        with get_client(sync_client=True) as client:
            return [
                *put_automations(client, notify, night),
                _work_pool(client),
                _gpu_limit(client, gpu_slots),
                *([] if notify is None else [_calls(notify)]),
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


def _calls(notify: str) -> str:
    """Let every deployment's run call through the block, and try it: a webhook that is wrong is found out now."""
    from prefect.variables import Variable

    Variable.set(VARIABLE, notify, overwrite=True)
    notifier = Notifier(notify)
    notifier.send("embaudit: set up", "This is where embaudit says what went wrong at night.")
    return notifier.warnings[0] if notifier.warnings else f"calls through {notify}: a first message was sent"


def _gpu_limit(client: SyncPrefectClient, slots: int) -> str:
    client.upsert_global_concurrency_limit_by_name(name=GPU_LIMIT, limit=slots)
    return f"concurrency limit {GPU_LIMIT}: {slots} measure{'s' * (slots != 1)} on a GPU at a time"
