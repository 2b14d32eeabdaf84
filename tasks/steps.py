"""Steps as Prefect tasks: each call is a task run, which shows the state Cached if its files existed.

What a running audit tells the Prefect UI: progress artifacts of long tasks, and lines in the flow run's log.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec
from uuid import UUID

import httpx
from prefect import State, Task, task
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture
from prefect.states import Completed

from embaudit.steps.progress import Report, reported_by, show
from embaudit.steps.results import CheckpointSpec, Staged
from embaudit.steps.step import Step
from embaudit_tasks.audit_task import in_a_run, run_logger

# How long to wait before calling an unreachable server again: each call spends a minute on Prefect's own retries.
SECONDS_OF_SILENCE = 600.0
_silent_until = 0.0


def say(line: str, level: int = logging.INFO) -> None:
    """Show a line in the terminal and write it to the flow run's log."""
    show(line, level)
    run_logger().log(level, line)


def progress_artifact(label: str) -> Report | None:
    """An artifact for the progress of this task, as a function that sets its percentage; None if there is none."""
    if TaskRunContext.get() is None:
        return None
    artifact = _told(lambda: create_progress_artifact(progress=0.0, description=label))
    if artifact is None:
        return None

    def report(percent: float) -> None:
        _told(lambda: update_progress_artifact(artifact_id=artifact, progress=percent))

    return report


def markdown_artifact(key: str, markdown: str, description: str) -> None:
    """An artifact of this run that it can do without."""
    _told(lambda: create_markdown_artifact(key=key, markdown=markdown, description=description))


def _told(call: Callable[[], object]) -> UUID | None:
    """Tell the server something that the run can do without. An unreachable server must not fail the run."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return None
    try:
        answer = call()
    except (httpx.HTTPError, RuntimeError):
        _silent_until = time.monotonic() + SECONDS_OF_SILENCE
        return None
    return answer if isinstance(answer, UUID) else None


P = ParamSpec("P")

# Tasks on a GPU have this tag, to find them in the UI; ``gpu_slot`` keeps audits from sharing a GPU.
GPU_TAG = "embaudit-gpu"


def run_step(step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
    """The step's staged files, found or made by a task of the current run; without one, by a plain call."""
    if not in_a_run():
        return step.compute(staging, *args, **kwargs)
    found: Any = task_of(step, *args, **kwargs)(staging, *args, **kwargs)
    # If the task returned a state, Prefect gives back that state.
    return list(found.result() if isinstance(found, State) else found)


def submit_step(step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> PrefectFuture[list[Staged]]:
    """The same, on the flow's task runner."""
    return task_of(step, *args, **kwargs).submit(staging, *args, **kwargs)


def task_of(step: Step[P], *args: P.args, **kwargs: P.kwargs) -> Task[..., Any]:
    """The task that a call with these arguments runs as."""
    made = _task(step)
    is_on_gpu = any(
        isinstance(value, CheckpointSpec) and value.device.startswith("cuda")
        for value in step.bound(*args, **kwargs).values()
    )
    return made.with_options(tags={*made.tags, GPU_TAG}) if is_on_gpu else made


@cache
def _task(step: Step[Any]) -> Task[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with reported_by(progress_artifact):
            files, were_there = step.found_or_made(*args, **kwargs)
        return Completed(name="Cached", data=files) if were_there else files

    # Prefect uses this to bind, show and format the arguments.
    staging = inspect.Parameter("staging", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([staging, *step.signature.parameters.values()])  # type: ignore[attr-defined]
    function = step.function
    run.__name__, run.__qualname__, run.__doc__ = function.__name__, function.__qualname__, function.__doc__
    return task(name=step.name, task_run_name=step.run_name, persist_result=False, cache_policy=NO_CACHE)(run)
