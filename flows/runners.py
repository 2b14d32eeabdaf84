"""Where shards are computed: in this process, in processes of this machine, or on a Dask cluster.

One setting, ``EMBAUDIT_RUNNER``; docs/runners.md says what was tried and why these.
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
from embaudit_tasks.workers import end_with_command

AnyFlow = TypeVar("AnyFlow", bound=Flow[..., Any])
SECONDS_TO_ANSWER = 10
STAGED_IS_KEPT = "Every finished shard is staged, and the published tables are as they were."


def is_elsewhere() -> bool:
    """Whether shards go to other processes than this one."""
    settings = Settings()
    return settings.workers > 1 or settings.runner == "dask"


def pooled(subflow: AnyFlow) -> AnyFlow:
    """The sub-flow with the task runner that the settings name; as it is where this process computes.

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
    """Say in one paragraph what became of workers that died, and end at once when somebody interrupts.

    Raises:
        MeasureError: if a worker died and its shard could not be given to another.
    """
    try:
        yield
    except KeyboardInterrupt:
        # Staged files are complete or absent: there is nothing that a worker has to finish.
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
    """Around handing out shards: where no server is named, workers report to the temporary one of their command.

    Each would start its own, with 220 MB, and leave it running when it is killed. The workers of a cluster that runs
    already do: they may be on machines that this one's temporary server cannot be reached from.
    """
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value() or Settings().runner_address:
        return nullcontext()
    return temporary_settings({PREFECT_API_URL: str(get_client(sync_client=True).api_url)})


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Around handing out shards: processes that start meanwhile never get Ctrl-C; this one gets it afterwards.

    A terminal sends it to all of them at once, and a pool whose workers die of it never ends (prefect 3.8.8 waits for
    them for ever). Threads and processes inherit what is blocked here, from their first instruction on.
    """
    # Started with the first process, it would unblock what is blocked here (Python 3.11 to 3.14).
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
    import distributed  # noqa: F401  (it sets its loggers' levels when it is imported)

    # A cluster that comes and goes tells everything twice, and every worker again; what fails is an error here.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if settings.runner_address:
        _require_workers(settings.runner_address)
        return DaskTaskRunner(address=settings.runner_address)
    return DaskTaskRunner(
        cluster_kwargs={
            "n_workers": settings.workers,
            # Models and BLAS are not made for several tasks in a process.
            "threads_per_worker": 1,
            # A web page that nobody asked for, on a port that may be taken.
            "dashboard_address": None,
            "silence_logs": logging.CRITICAL,
        }
    )


def _require_workers(address: str) -> None:
    """A cluster without workers would let an audit wait for ever.

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
    """What became of a worker or its cluster; None where the error is a task's own."""
    from concurrent.futures import BrokenExecutor, CancelledError

    name, module = type(error).__name__, type(error).__module__
    if isinstance(error, BrokenExecutor) or name == "KilledWorker":
        return "A worker process died (the system may have killed it for its memory)"
    if module.startswith("distributed.") or isinstance(error, CancelledError):
        return f"The Dask cluster was lost ({name})"
    return None
