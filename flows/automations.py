"""What a Prefect server does by itself, since no run can: end runs that died, and call people.

A run that failed or found a problem says so itself (``flows/notify.py``), under a name of its own. A run that is merely
*Failed* or *Crashed*, one that nobody takes, and a night that never began have no voice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from embaudit.words.errors import ServerError

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import BlockDocument
    from prefect.events.schemas.automations import AutomationCore

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
