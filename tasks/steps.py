"""Steps as Prefect tasks: each call is a task run, which shows the state Cached if its files existed."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, ParamSpec

from prefect import State, Task, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.states import Completed

from embaudit.steps.progress import reported_by
from embaudit.steps.results import CheckpointSpec, Staged
from embaudit.steps.step import Step
from embaudit_tasks.audit_task import in_a_run
from embaudit_tasks.progress import progress_artifact

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
