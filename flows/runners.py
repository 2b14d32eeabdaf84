"""Chooses where shards are computed: in this process, in several on this machine, or on a Dask cluster.

``EMBAUDIT_RUNNER`` and ``EMBAUDIT_WORKERS`` decide; docs/runners.md says what was tried, and why these were chosen.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing import resource_tracker
from typing import Any, TypeVar, cast

from prefect import Flow

from embaudit.errors import MeasureError, UsageError
from embaudit.masking import without_credentials
from embaudit.settings import Settings
from embaudit.steps.workers import end_with_command

AnyFlow = TypeVar("AnyFlow", bound=Flow[..., Any])
SECONDS_TO_ANSWER = 10
STAGED_IS_KEPT = "Every finished shard is staged, and the published tables are as they were."


def is_elsewhere() -> bool:
    """Whether shards are computed by other processes."""
    settings = Settings()
    return settings.workers > 1 or settings.runner == "dask"


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
        lost = _lost(error)
        if lost is None:
            raise
        raise MeasureError(
            f"{lost} while it computed {what}.",
            kept=STAGED_IS_KEPT,
            next_step="Run the same command again: it continues where it stopped. "
            "Where memory was short, a lower EMBAUDIT_WORKERS takes less.",
        ) from error


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


@contextmanager
def interrupts_held() -> Iterator[None]:
    """While submitting shards: processes that start now never get Ctrl-C; this process gets it afterwards.

    A terminal sends Ctrl-C to all processes at once, and a pool whose workers die of it never ends (prefect 3.8.8 waits
    for them forever). Threads and processes inherit the blocked signals, from their first instruction on.
    """
    # If it started only with the first process, it would unblock the signal again (Python 3.11 to 3.14).
    resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _processes(workers: int) -> Any:
    from prefect.task_runners import ProcessPoolTaskRunner

    return ProcessPoolTaskRunner(max_workers=workers, initializer=end_with_command)


def _dask(settings: Settings) -> Any:
    try:
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError as error:
        raise UsageError(
            "EMBAUDIT_RUNNER=dask needs prefect-dask, which is not installed.",
            next_step="pip install 'embaudit[dask]'",
        ) from error
    import distributed  # noqa: F401  (importing it sets the levels of its loggers)

    # Starting and stopping a cluster is logged twice, and again by each worker; failures are raised as errors here.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if settings.runner_address:
        _require_workers(settings.runner_address)
        return DaskTaskRunner(address=settings.runner_address)
    return DaskTaskRunner(
        cluster_kwargs={
            "n_workers": settings.workers,
            # Models and BLAS are not made for several tasks in one process.
            "threads_per_worker": 1,
            # Its port may be taken, and nobody asked for a dashboard.
            "dashboard_address": None,
            "silence_logs": logging.CRITICAL,
        }
    )


def _require_workers(address: str) -> None:
    """Refuse a cluster without workers, on which an audit would wait forever.

    Raises:
        UsageError: if no scheduler answers there, or it has no worker.
    """
    import distributed

    try:
        with distributed.Client(  # type: ignore[no-untyped-call]
            address, timeout=SECONDS_TO_ANSWER, set_as_default=False
        ) as client:
            workers = client.scheduler_info()["workers"]
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"No Dask scheduler answers at {without_credentials(address)} ({type(error).__name__}).",
            next_step="Start it (dask scheduler), or name another in EMBAUDIT_RUNNER_ADDRESS.",
        ) from error
    if not workers:
        raise UsageError(
            f"The Dask scheduler at {without_credentials(address)} has no worker.",
            next_step="Start one on each machine that is to compute: dask worker ADDRESS --nthreads 1",
        )


def _lost(error: Exception) -> str | None:
    """How a worker or its cluster was lost; None if the error was raised by a task."""
    from concurrent.futures import BrokenExecutor, CancelledError

    name, module = type(error).__name__, type(error).__module__
    if isinstance(error, BrokenExecutor) or name == "KilledWorker":
        return "A worker process died (the system may have killed it for its memory)"
    if module.startswith("distributed.") or isinstance(error, CancelledError):
        return f"The Dask cluster was lost ({name})"
    return None
