"""Worker processes: their share of the machine (some of the cores, one GPU), how they start and how they end.

Dask: a cluster of this command's own, or one that is running already.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import Any

from embaudit.system.processors import processors
from embaudit.system.settings import Settings
from embaudit.words.errors import UsageError
from embaudit.words.masking import without_credentials


def settle(device: str) -> None:
    """Called before a worker process loads a checkpoint; does nothing in the process that a user started.

    Two processes that both want all cores slow each other down, so each of ``EMBAUDIT_WORKERS`` takes its share. (For
    Dask workers on other machines that number is not set; there OMP_NUM_THREADS decides.) And a worker keeps to one
    GPU: CUDA lets it see no other from here on, whatever shards it gets.
    """
    if multiprocessing.parent_process() is None:
        return
    import torch

    workers = Settings().workers
    if workers > 1:
        torch.set_num_threads(threads_of(processors(), workers))
    # Once initialised, CUDA no longer reads the variable; by then the first load has set it.
    if device == "cuda" and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gpus = visible_gpus()
        if len(gpus) > 1:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu_of(worker_number(), gpus)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """While workers are started: processes that start now never get Ctrl-C; this process gets it afterwards.

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


def end_with_command() -> None:
    """Called when a pool's process starts: make it end when the command is killed, whatever it is doing.

    Otherwise it would wait forever for its next shard (Python 3.11 to 3.14), with a model in memory: workers hold both
    ends of the pipe through which shards arrive. Staged files are complete or absent, so nothing is lost.
    """
    command = multiprocessing.parent_process()
    if command is not None:

        def follow() -> None:
            command.join()
            os._exit(1)

        threading.Thread(target=follow, name="end with command", daemon=True).start()


def threads_of(cores: int, workers: int) -> int:
    """Number of threads for each worker."""
    return max(1, cores // workers)


def gpu_of(number: int, gpus: Sequence[str]) -> str:
    """The GPU of a worker: workers take them in turn."""
    return gpus[number % len(gpus)]


def worker_number() -> int:
    """Which child of its parent this process is, from 0; processes that a parent starts have different numbers."""
    identity = multiprocessing.current_process()._identity
    return identity[-1] - 1 if identity else 0


def visible_gpus() -> list[str]:
    """The GPUs that CUDA may use here, as CUDA names them; does not initialise CUDA."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    return [str(index) for index in range(torch.cuda.device_count())]


SECONDS_TO_ANSWER = 10
# How long a result may take before it is looked whether a cluster has any worker left; and how often in a row it may
# have none, since one that died may be started again.
SECONDS_TO_LOOK, LOOKS = 30.0, 3


def require_dask(module: str = "distributed") -> Any:
    """The module, with Dask's own messages off: what fails is raised as an error here.

    Raises:
        UsageError: if it is not installed.
    """
    from importlib import import_module

    try:
        found = import_module(module)
        # Importing it sets the levels of its loggers. Starting and stopping is logged twice, and again by each worker.
        import_module("distributed")
    except ImportError as error:
        raise UsageError(
            f"EMBAUDIT_RUNNER=dask needs {module.partition('.')[0].replace('_', '-')}, which is not installed.",
            next_step="pip install 'embaudit[dask]'",
        ) from error
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return found


def own_cluster(workers: int) -> dict[str, Any]:
    """How a cluster that exists only for the command is started."""
    return {
        "n_workers": workers,
        # Models and BLAS are not made for several tasks in one process.
        "threads_per_worker": 1,
        # Its port may be taken, and nobody asked for a dashboard.
        "dashboard_address": None,
        "silence_logs": logging.CRITICAL,
    }


def require_workers(address: str) -> None:
    """Refuse a cluster without workers, on which a command would wait forever.

    Raises:
        UsageError: if no scheduler answers there, or it has no worker.
    """
    distributed = require_dask()
    try:
        with distributed.Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False) as client:
            workers = client.nthreads()
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


class ClusterIsEmpty(BrokenExecutor):
    """The last worker of a cluster is gone."""


class DaskWorkers:
    """The workers of the cluster at ``EMBAUDIT_RUNNER_ADDRESS``, or of one that lives until ``close``.

    Args:
        own: how many the latter has.
    """

    def __init__(self, own: int) -> None:
        distributed = require_dask()
        address = Settings().runner_address
        if address:
            require_workers(address)
        with ExitStack() as stack:
            with interrupts_held():
                at = address or stack.enter_context(distributed.LocalCluster(**own_cluster(own)))
                self._client = stack.enter_context(distributed.Client(at, set_as_default=False))
            # Ctrl-C that was held comes before this line, and closes both.
            self._held = stack.pop_all()

    @property
    def most(self) -> int:
        # Machines come and go.
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, call: Callable[[Any], Any], argument: Any) -> _OfCluster:
        import dask

        # Texts are a large graph to Dask, which says so on stderr.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return _OfCluster(self._client, self._client.submit(call, argument, pure=False))

    def close(self) -> None:
        self._held.close()


class _OfCluster:
    def __init__(self, client: Any, future: Any) -> None:
        self._client, self._future = client, future

    def done(self) -> bool:
        return bool(self._future.done())

    def result(self) -> Any:
        looks = 0
        while True:
            try:
                return self._future.result(timeout=SECONDS_TO_LOOK)
            except TimeoutError:
                # The call's own; or the result came just after the wait ended.
                if self._future.done():
                    return self._future.result()
            # The scheduler itself would wait forever for workers to come.
            looks = 0 if self._client.nthreads() else looks + 1
            if looks == LOOKS:
                raise ClusterIsEmpty("no worker is left")
