"""The sub-flow that runs one measure, whichever it is.

Its steps are Prefect tasks; shards are computed perhaps several at a time, on other processes.

Chooses where shards are computed: in this process, in several on this machine, or on a Dask cluster.

``EMBAUDIT_RUNNER`` and ``EMBAUDIT_WORKERS`` decide; docs/runners.md says what was tried, and why these were chosen.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

from prefect import Flow, flow

from embaudit.measures import MEASURES, Measure
from embaudit.steps.elsewhere import is_elsewhere, lost_workers
from embaudit.steps.progress import shard_done
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.steps.step import Step
from embaudit.steps.workers import end_with_command, interrupts_held, own_cluster, require_dask, require_workers
from embaudit.system.settings import Settings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.steps import in_a_run, run_step, submit_step

AnyFlow = TypeVar("AnyFlow", bound=Flow[..., Any])
STAGED_IS_KEPT = "Every finished shard is staged, and the published tables are as they were."


def pooled(subflow: AnyFlow) -> AnyFlow:
    """The sub-flow with the task runner from the settings; unchanged if this process computes the shards.

    Raises:
        UsageError: if the runner is not installed.
    """
    if not is_elsewhere():
        return subflow
    settings = Settings()
    runner: Any = _dask(settings) if settings.runner == "dask" else _processes(settings.workers)
    return cast(AnyFlow, subflow.with_options(task_runner=runner))


@contextmanager
def computing_elsewhere(what: str) -> Iterator[None]:
    """Report lost workers in one paragraph, and end at once on an interrupt.

    Raises:
        MeasureError: if a worker died and its shard could not be given to another, or the cluster was lost.
    """
    try:
        yield
    except KeyboardInterrupt:
        # Staged files are complete or absent, so there is nothing that a worker must finish.
        if Settings().runner == "process":
            for child in multiprocessing.active_children():
                child.kill()
        raise
    except Exception as error:
        lost = lost_workers(error, what, STAGED_IS_KEPT)
        if lost is None:
            raise
        raise lost from error


def on_one_server() -> AbstractContextManager[object]:
    """While submitting shards: if no server is configured, let workers report to this command's temporary one.

    Otherwise each would start its own, which takes 220 MB and keeps running if the worker is killed. Workers of a
    cluster that was already running still do, since their machines may not be able to reach the temporary server.
    """
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value() or Settings().runner_address:
        return nullcontext()
    return temporary_settings({PREFECT_API_URL: str(get_client(sync_client=True).api_url)})


def _processes(workers: int) -> Any:
    from prefect.task_runners import ProcessPoolTaskRunner

    return ProcessPoolTaskRunner(max_workers=workers, initializer=end_with_command)


def _dask(settings: Settings) -> Any:
    runner = require_dask("prefect_dask.task_runners").DaskTaskRunner
    if settings.runner_address:
        require_workers(settings.runner_address)
        return runner(address=settings.runner_address)
    return runner(cluster_kwargs=own_cluster(settings.workers))


P = ParamSpec("P")


class PrefectTasks:
    """The ``Engine`` of a run within a flow."""

    def call(self, step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
        return run_step(step, staging, *args, **kwargs)

    def call_shards(
        self, step: Step[...], staging: str, shards: Sequence[dict[str, Any]], **shared: Any
    ) -> list[Staged]:
        """If the settings say so, the flow's task runner takes the calls (``pooled``)."""
        if not is_elsewhere() or len(shards) < 2:
            return [part for shard in shards for part in run_step(step, staging, **shared, **shard)]
        staged: list[Staged] = []
        with computing_elsewhere(step.name):
            with on_one_server(), interrupts_held():
                futures = [submit_step(step, staging, **shared, **shard) for shard in shards]
            for future in futures:
                staged += future.result()
                shard_done(f"{step.name}, shards", len(shards))
        return staged


def run_measure(
    measure: Measure, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]
) -> list[Staged]:
    """Run a measure as a flow of its name; returns what it staged.

    Args:
        earlier: what the measures before it staged.
    """
    needed = earlier if plan.profile.of(measure.settings).builds_on else []
    if not in_a_run():
        return measure.parts().measure(plan.run(ingested, needed))
    named = _named(measure.name)
    run = pooled(named) if measure.is_sharded else named
    staged: list[Staged] = run(measure.name, plan, ingested, needed)
    return staged


@cache
def _named(name: str) -> Flow[..., list[Staged]]:
    """Made once: Prefect derives the schema of all parameters anew, which takes as long as some measures."""
    return _measure.with_options(name=name)


@flow(flow_run_name="{name} of {plan.source}", persist_result=False)
def _measure(name: str, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]) -> list[Staged]:
    return MEASURES[name].parts().measure(plan.run(ingested, earlier, PrefectTasks()))
