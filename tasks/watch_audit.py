"""Runs one audit of a watch as a separate run on a worker: starts it once, waits, and finds it in the warehouse."""

from __future__ import annotations

import time
from typing import Any

from prefect import task
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run as this_run
from pydantic import BaseModel

from embaudit.questions.audit import AuditRequest
from embaudit.system.installed import content_key
from embaudit.warehouse.regression import is_published
from embaudit.words.errors import ServerError
from embaudit_tasks.steps import AUDIT_LABEL, GATE_LABEL

POLL_SECONDS = 2.0


class AuditEnd(BaseModel):
    """How an audit ended: its id if it was published, otherwise why not.

    A tripped gate is no failure: the audit is published, and what its gate found is in the warehouse.
    """

    audit_id: str | None = None
    reason: str | None = None
    is_running: bool = False

    @property
    def has_failed(self) -> bool:
        return self.reason is not None and not self.is_running


def require_deployment(name: str) -> None:
    """Make sure that a deployment exists.

    Raises:
        ServerError: if the server has no deployment of that name.
    """
    with get_client(sync_client=True) as client:
        try:
            client.read_deployment_by_name(name)
        except (ObjectNotFound, ValueError) as error:
            raise ServerError(
                f"The Prefect server has no deployment {name!r}.",
                next_step="Deploy it (prefect --no-prompt deploy --all), or omit --deployment: audits then run in "
                "this process.",
            ) from error


@task(name="audit on a worker", task_run_name="audit {request.checkpoint} on a worker", persist_result=False)
def audit_on_worker(
    deployment: str,
    request: AuditRequest,
    source: str,
    checkpoint_id: str,
    parameters_key: str,
    warehouse: str,
    timeout_seconds: float,
    again: bool,
) -> AuditEnd:
    """Run the deployed audit and wait for its end.

    The run's idempotency key is made from its question, so that neither rerunning a killed watch nor a concurrent watch
    starts a second run.
    """
    key = content_key(source=source, checkpoint=checkpoint_id, settings=parameters_key)
    if again:
        key = f"{key}-{this_run.get_id()}"
    run = _start(deployment, request, key)
    end = end_of(run, warehouse)
    if end is not None and end.audit_id is None and not end.is_running:
        # An earlier night's run that failed, or whose audit is gone: Prefect would return it forever.
        run = _start(deployment, request, f"{key}-{this_run.get_id()}")
        end = None
    deadline = time.monotonic() + timeout_seconds
    while end is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        run = _read(run)
        end = end_of(run, warehouse)
    return end or AuditEnd(
        reason=f"run {run.name} has not ended after {timeout_seconds:.0f} s; it goes on, and a later watch finds it",
        is_running=True,
    )


def _start(deployment: str, request: AuditRequest, key: str) -> FlowRun:
    # If the server already has a run with this key, it returns that one. timeout=0: do not wait for the run.
    run: Any = run_deployment(
        deployment,
        parameters={"request": request.model_dump(mode="json")},
        timeout=0,
        idempotency_key=key,
        as_subflow=True,
        tags=["embaudit-watch"],
    )
    return run


def _read(run: FlowRun) -> FlowRun:
    with get_client(sync_client=True) as client:
        return client.read_flow_run(run.id)


def end_of(run: FlowRun, warehouse: str) -> AuditEnd | None:
    """How a run ended; None while it is still running.

    The run itself says which audit it made: two runs of one folder may differ in nothing but their corpora, and an
    earlier run may have published what a later one failed to.
    """
    if run.state is None or not run.state.is_final():
        return None
    audit_id = run.labels.get(AUDIT_LABEL)
    if not run.state.is_completed() and run.labels.get(GATE_LABEL) != "tripped":
        return AuditEnd(reason=f"run {run.name} ended as {run.state.name}: {run.state.message or 'it says nothing'}")
    if not isinstance(audit_id, str):
        return AuditEnd(reason=f"run {run.name} does not say which audit it made: is its worker's embaudit older?")
    if not is_published(warehouse, audit_id):
        return AuditEnd(
            reason=f"run {run.name} made the audit {audit_id}, and this warehouse does not have it: "
            "does the worker write another warehouse, or see another folder?"
        )
    return AuditEnd(audit_id=audit_id)
