"""Worker processes: their share of the machine (some of the cores, one GPU), how they start and how they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker

from embaudit.system.processors import processors
from embaudit.system.settings import Settings


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
