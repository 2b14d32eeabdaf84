"""Chooses where shards are computed: in this process, in several on this machine, or on a Dask cluster.

``EMBAUDIT_RUNNER`` and ``EMBAUDIT_WORKERS`` decide; docs/runners.md says what was tried, and why these were chosen.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar, cast

from prefect import Flow

from embaudit.steps.elsewhere import is_elsewhere, lost_workers
from embaudit.steps.workers import end_with_command, own_cluster, require_dask, require_workers
from embaudit.system.settings import Settings

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
