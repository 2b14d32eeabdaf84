"""Tasks of a watch: ask the hub, read a checkpoint's content, record what was seen and what got worse.

Runs one audit of a watch as a separate run on a worker: starts it once, waits, and finds it in the warehouse.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from prefect import task
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run as this_run
from pydantic import BaseModel

from embaudit.pages.general import weights_changed
from embaudit.questions.audit import AuditRequest
from embaudit.questions.check.verdict import FIRST
from embaudit.steps.results import stage_rows
from embaudit.system.hub import is_transient
from embaudit.system.installed import content_key
from embaudit.warehouse.regression import compare, find_predecessor, is_published, read_figures, read_weight_changes
from embaudit.warehouse.tables import MEASURE_OF
from embaudit.warehouse.tables.audits import IndexChangeRow, RegressionRow, WatchedRevisionRow, WatchRunRow
from embaudit.watch.history import (
    OTHER_VECTORS,
    IndexChange,
    WatchedRevision,
    compare_passports,
    passport_of,
    switch_revisions,
)
from embaudit.watch.look import Source, SourceState, read_content
from embaudit.watch.watch_list import OrganisationEntry, current_commit, list_organisation
from embaudit.words.errors import ServerError
from embaudit_tasks.publish import publish_checked
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


AUDITS_STAND = "Audits are published as they were."


def is_unreachable(task: Any, run: Any, state: Any) -> bool:
    """Retry errors that may pass when the hub is back."""
    return is_transient(state.result(raise_on_failure=False))


@task(
    name="ask the hub", task_run_name="ask the hub for {name}", retry_condition_fn=is_unreachable, persist_result=False
)
def ask_for_commit(name: str, branch: str | None) -> str:
    """The current commit of a repository's branch."""
    return current_commit(name, branch)


@task(
    name="list organisation",
    task_run_name="list {entry.name}",
    retry_condition_fn=is_unreachable,
    persist_result=False,
)
def ask_for_models(entry: OrganisationEntry) -> list[str]:
    """The models of an organisation that a watch list asks for."""
    return list_organisation(entry)


@task(
    name="read content",
    task_run_name="read content of {reference}",
    retry_condition_fn=is_unreachable,
    persist_result=False,
)
def ask_for_content(source: Source, reference: str) -> str:
    """The checkpoint id of a reference; a commit's files are fetched for it."""
    return read_content(source, reference)


@task(name="record what was seen", task_run_name="record what was seen", persist_result=False)
def record_watched(rows: list[WatchedRevision], warehouse: str, wait_seconds: float, staging: str) -> int:
    """Check and publish rows of ``watched_revision``; returns their number."""
    if not rows:
        return 0
    dumped = [row.model_dump() | {"parameters": json.dumps(row.parameters, sort_keys=True)} for row in rows]
    key = content_key(rows=[str(row) for row in dumped])
    staged = stage_rows(staging, "watch", key, WatchedRevisionRow, dumped)
    publish_checked([staged], warehouse, wait_seconds, kept=AUDITS_STAND)
    return len(rows)


@task(name="record the night", task_run_name="record the night", persist_result=False)
def record_night(row: dict[str, Any], warehouse: str, wait_seconds: float, staging: str) -> None:
    """Check and publish a row of ``watch_run``."""
    row |= {"problems": json.dumps(row["problems"], ensure_ascii=False)}
    staged = stage_rows(staging, "watch", str(row["run_key"]), WatchRunRow, [row])
    publish_checked([staged], warehouse, wait_seconds, kept=AUDITS_STAND)


@task(name="compare indexes", task_run_name="what becomes of an index of {old.source}", persist_result=False)
def compare_indexes(
    new: SourceState, old: WatchedRevision, reports: str, loads: bool, warehouse: str, wait_seconds: float, staging: str
) -> IndexChange | None:
    """Compare a source's new revision with the one before, check and publish; None if there is nothing to compare.

    Passports are read first: they cost nothing, and where they agree, nothing has changed.
    """
    source = new.source
    before, after = (passport_of(Path(reports), str(one.checkpoint_id)) for one in (old, new))
    found = compare_passports(before, after) if before is not None and after is not None else None
    if loads and source.kind == "hub" and (found is None or found.verdict == OTHER_VECTORS):
        found = switch_revisions(f"{source.place}@{old.revision}", new.reference, source.settings.load_options)
    if found is not None:
        pair = {"audit_id": str(new.audit_id), "predecessor_audit_id": str(old.audit_id)}
        name = f"index-change-{old.audit_id}"
        rows = [{**pair, **found.model_dump()}]
        staged = stage_rows(staging, "audit", str(new.audit_id), IndexChangeRow, rows, file_name=name)
        publish_checked([staged], warehouse, wait_seconds, kept=AUDITS_STAND)
    return found


@task(name="compare with predecessor", task_run_name="compare {audit_id} with its predecessor", persist_result=False)
def compare_with_predecessor(
    audit_id: str, previous_audit_id: str | None, warehouse: str, wait_seconds: float, staging: str
) -> dict[str, Any] | None:
    """Compare, check and publish; returns the predecessor and the figures that got worse, None if there is none."""
    predecessor = find_predecessor(warehouse, audit_id, previous_audit_id)
    if predecessor is None:
        return None
    pair = {"audit_id": audit_id, "predecessor_audit_id": predecessor}
    figures = compare(read_figures(warehouse, audit_id), read_figures(warehouse, predecessor))
    if figures:
        rows = [{**pair, **row} for row in figures]
        name = f"regression-{predecessor}"
        staged = stage_rows(staging, "audit", audit_id, RegressionRow, rows, file_name=name)
        publish_checked([staged], warehouse, wait_seconds, kept=AUDITS_STAND)
    changes = read_weight_changes(warehouse, **pair)
    return {
        **pair,
        "figures": len(figures),
        "worse": sorted(
            (row for row in figures if row["is_worse"]), key=lambda row: MEASURE_OF[row["summary"]] not in FIRST
        ),
        "weights": weights_changed(changes).sentence if changes else None,
    }
