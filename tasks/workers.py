"""A worker process: its share of its machine (some of the cores, one GPU), and its end."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence

from embaudit.settings import Settings


def settle(device: str) -> None:
    """Called before a worker process loads its first checkpoint; does nothing in the process that a user started.

    Two processes that both want all cores slow each other down: of ``EMBAUDIT_WORKERS`` each takes its part. (A Dask
    worker elsewhere has no such number; OMP_NUM_THREADS says what it takes.) And a worker keeps to one GPU: it is all
    that CUDA lets it see from here on, whatever shard comes.
    """
    if multiprocessing.parent_process() is None:
        return
    import torch

    workers = Settings().workers
    if workers > 1:
        torch.set_num_threads(threads_of(os.cpu_count() or 1, workers))
    # Once CUDA runs it no longer reads the variable, and then the first load has settled this already.
    if device == "cuda" and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gpus = visible_gpus()
        if len(gpus) > 1:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu_of(worker_number(), gpus)


def end_with_command() -> None:
    """Called when a pool's process starts: let it end when the command is killed, whatever it is doing.

    It would wait for its next shard for ever (Python 3.11 to 3.14), with a model in memory: workers hold both ends of
    the pipe that shards come by. Staged files are complete or absent, so that nothing is lost.
    """
    command = multiprocessing.parent_process()
    if command is not None:

        def follow() -> None:
            command.join()
            os._exit(1)

        threading.Thread(target=follow, name="end with command", daemon=True).start()


def threads_of(cores: int, workers: int) -> int:
    """Threads for one of so many workers."""
    return max(1, cores // workers)


def gpu_of(number: int, gpus: Sequence[str]) -> str:
    """The GPU of a worker: by turns."""
    return gpus[number % len(gpus)]


def worker_number() -> int:
    """Which child of its parent this process is, from 0: processes that a parent starts one after another differ."""
    identity = multiprocessing.current_process()._identity
    return identity[-1] - 1 if identity else 0


def visible_gpus() -> list[str]:
    """What CUDA may use here, in CUDA's own words; counted without starting CUDA."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    return [str(index) for index in range(torch.cuda.device_count())]
