"""Tasks of an audit: task runs within a run of a flow, else plain calls, which need no server (``flows/audit.py``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from prefect import Task
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext, TaskRunContext
from prefect.exceptions import MissingContextError
from prefect.logging import get_logger, get_run_logger
from prefect.runtime import flow_run

P = ParamSpec("P")
R = TypeVar("R")


def in_a_run() -> bool:
    """Whether this is called by a run that a Prefect server knows."""
    return FlowRunContext.get() is not None or TaskRunContext.get() is not None


class AuditTask(Task[P, R]):
    """A task that is its function outside of a run."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs) if in_a_run() else self.fn(*args, **kwargs)


def audit_task(name: str, run_name: str | None = None, **options: Any) -> Callable[[Callable[P, R]], Task[P, R]]:
    """Turn a function into a task of an audit.

    Args:
        name, run_name: what people see in the Prefect UI, of the task and of its runs; the latter is a format string
            for the arguments. Without it, runs are named like the task.
        options: further options of a Prefect task.
    """

    def made(function: Callable[P, R]) -> Task[P, R]:
        return AuditTask(function, name=name, task_run_name=run_name or name, persist_result=False, **options)

    return made


def run_logger() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """The logger of the current run, or outside of one, of this program."""
    try:
        return get_run_logger()
    except MissingContextError:
        return get_logger("embaudit")


# The audit that a run makes, as soon as it is known; and what its gate found.
AUDIT_LABEL = "embaudit.audit_id"
GATE_LABEL = "embaudit.gate"


def label_run(labels: Mapping[str, str]) -> None:
    """Add labels to the flow run that this is called in."""
    run_id = flow_run.get_id()
    if run_id is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run_labels(UUID(run_id), dict(labels))
