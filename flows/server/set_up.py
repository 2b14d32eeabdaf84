"""Prepares a Prefect server for embaudit's deployments: a work pool, a GPU limit, automations, and whom to call.

All are found by name, so this can be repeated: the limit and the automations are updated, the work pool is kept.

Limits how many measures use a GPU at a time, across a server's workers, by a Prefect concurrency limit.

What a Prefect server does by itself, since no run can: end runs that died, and call people.

A run that failed or found a problem says so itself (``flows/notify.py``), under a name of its own. A run that is merely
*Failed* or *Crashed*, one that nobody takes, and a night that never began have no voice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from embaudit.system.settings import Settings
from embaudit.words.errors import ServerError
from embaudit_flows.notify import VARIABLE, Notifier

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import BlockDocument
    from prefect.events.schemas.automations import AutomationCore

GPU_LIMIT = "embaudit-gpu"


@contextmanager
def gpu_slot(device: str) -> Iterator[None]:
    """Hold one of the server's GPU slots while a measure computes.

    Only if ``EMBAUDIT_GPU_LIMIT`` names a limit (set in prefect.yaml; not needed for a command on your own machine) and
    the device is a GPU. A limit that is named must exist: Prefect's default is to go on without it, and two audits
    could then share a GPU although someone took care to prevent it.

    Raises:
        ServerError: if the server has no limit of that name.
    """
    limit = Settings().gpu_limit
    if not limit or not device.startswith("cuda"):
        yield
        return
    from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
    from prefect.concurrency.sync import concurrency

    slot = concurrency(limit, strict=True)
    try:
        slot.__enter__()
    except ConcurrencySlotAcquisitionError as error:
        raise ServerError(
            f"The Prefect server has no concurrency limit {limit!r}, which EMBAUDIT_GPU_LIMIT asks for.",
            kept="All computed results are staged; nothing is lost.",
            next_step="Make it (embaudit setup-server) or unset EMBAUDIT_GPU_LIMIT, and run the same command again.",
        ) from error
    with ExitStack() as held:
        held.push(slot)
        yield


ZOMBIES = "embaudit: runs without a heartbeat have crashed"
STILLBORN = "embaudit: runs that never sent a heartbeat have crashed"
UNBEGUN = "embaudit: runs that were taken and never began have crashed"
DIED = "embaudit: call when a run died"
LATE = "embaudit: call when a run is late"
MISSED = "embaudit: call when no night ran"
# Three heartbeats: prefect.yaml sets their interval to thirty seconds.
SILENCE = timedelta(seconds=90)
# How long a worker that took a run may need until the run's own code begins: an image is fetched, torch is imported.
BEGINNING = timedelta(minutes=15)
# What every deployment of prefect.yaml is tagged with, and the one that runs at night.
NIGHTLY = "nightly"
OWN = {"prefect.resource.id": "prefect.tag.embaudit", "prefect.resource.role": "tag"}
# Runs of a terminal may send no heartbeats; those of a deployment do.
DEPLOYED = {"prefect.resource.id": "prefect.deployment.*", "prefect.resource.role": "deployment"}
AGAIN = (
    "Every finished step is staged, and the next run continues there. To run it now: prefect deployment run NAME "
    "(after a kill, it waits about two minutes for the dead one's place)."
)


def automations(block: BlockDocument | None, night: timedelta) -> Iterator[AutomationCore]:
    """The automations that a server should have.

    Args:
        block: whom to call; None: nobody.
        night: how long there may be no night.
    """
    from prefect.events.actions import SendNotification
    from prefect.events.schemas.automations import Posture

    yield from _dead_runs()
    if block is None:
        return

    def call(subject: str, body: str) -> list[SendNotification]:
        return [SendNotification(block_document_id=block.id, subject=subject, body=body)]

    # Of the event: a run may be deleted by the time that it is told.
    run = "{{ event.resource.name }}"
    yield _automation(
        DIED,
        "A run that could not say itself what happened: its process was killed, or it never got to its own code.",
        # TimedOut is Prefect's, too; a run that ends by itself has a name of its own.
        expect={f"prefect.flow-run.{state}" for state in ("Crashed", "Failed", "TimedOut")},
        actions=call(
            f"embaudit: {run} is {{{{ event.resource['prefect.state-name'] }}}}",
            f"{{{{ event.resource['prefect.state-message'] }}}} {AGAIN}",
        ),
    )
    yield _automation(
        LATE,
        "A run that nobody took in time: no worker polls, or all are busy.",
        expect={"prefect.flow-run.Late"},
        actions=call(
            f"embaudit: {run} is late",
            "No worker has taken it. Is one running (embaudit doctor)? Start: embaudit worker",
        ),
    )
    hours = night.total_seconds() / 3600
    yield _automation(
        MISSED,
        "A night that did not happen: the deployment watch/nightly began no run.",
        expect={"prefect.flow-run.Running"},
        related=(OWN, {"prefect.resource.name": NIGHTLY, "prefect.resource.role": "deployment"}),
        posture=Posture.Proactive,
        within=night,
        actions=call(
            "embaudit: no night ran",
            f"watch/nightly has begun no run for {hours:g} hours. Look why: embaudit doctor",
        ),
    )


def put_automations(client: SyncPrefectClient, block: str | None, night: timedelta) -> list[str]:
    """Create or update the automations; returns a line about each.

    Raises:
        ServerError: if there is no such notification block.
    """
    called = None if block is None else _block(client, block)
    lines = []
    for automation in automations(called, night):
        known = client.read_automations_by_name(automation.name)
        for old in known[:1]:
            client.update_automation(old.id, automation)
        if not known:
            client.create_automation(automation)
        lines.append(f"automation: {automation.name.removeprefix('embaudit: ')}")
    return lines


def _block(client: SyncPrefectClient, name: str) -> BlockDocument:
    from prefect.exceptions import ObjectNotFound

    kind, _, own = name.partition("/")
    try:
        if not own:
            raise ValueError(name)
        return client.read_block_document_by_name(own, kind)
    except (ObjectNotFound, ValueError) as error:
        raise ServerError(
            f"The server has no notification block {name}.",
            kept="Nothing was changed.",
            next_step="A block is named KIND/NAME, such as slack-webhook/ops; list them: prefect block ls",
        ) from error


def _dead_runs() -> Iterator[AutomationCore]:
    """End runs of which nothing is heard any more: if a machine dies, nothing else would ever end its run."""
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import Posture

    for name, last_heard, within, related, message in (
        (ZOMBIES, "heartbeat", SILENCE, (), "No heartbeat: its process or machine has died."),
        # Killed before its first one.
        (STILLBORN, "Running", SILENCE, (OWN, DEPLOYED), "It began and sent no heartbeat: its process has died."),
        (UNBEGUN, "Pending", BEGINNING, (OWN, DEPLOYED), "A worker took it and it never began: the worker has died."),
    ):
        yield _automation(
            name,
            "Marks a run as crashed when nothing is heard of it, so that a new one can take its place.",
            after={f"prefect.flow-run.{last_heard}"},
            # Any state, since a run that found a problem ends under the problem's name.
            expect={"prefect.flow-run.*"},
            related=related,
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            within=within,
            actions=[
                ChangeFlowRunState(
                    state=StateType.CRASHED, message=f"{message} The same question continues where it stopped."
                )
            ],
        )


def _automation(
    name: str, description: str, *, actions: list[Any], related: tuple[dict[str, str], ...] = (OWN,), **trigger: Any
) -> AutomationCore:
    """An automation about flow runs; of embaudit's deployments, unless it says otherwise."""
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    return AutomationCore(
        name=name,
        description=description,
        trigger=EventTrigger(
            match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
            match_related=[ResourceSpecification(one) for one in related],
            threshold=1,
            **{"posture": Posture.Reactive, **trigger},
        ),
        actions=actions,
    )


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
