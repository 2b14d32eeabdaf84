"""Computes the shards of a step in several processes, and says how far they are.

One process would leave a GPU idle while it tokenises; each has its own part of the cores (``EMBAUDIT_WORKERS``).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from embaudit.measures.run import InThisProcess
from embaudit.steps.progress import shown_on
from embaudit.steps.results import Staged
from embaudit.steps.step import Step
from embaudit.steps.workers import end_with_command, threads_of

SECONDS_BETWEEN_LINES = 20.0


@dataclass(frozen=True)
class Shards(InThisProcess):
    """Steps in this process, and the shards of a step in ``processes``.

    Staged shards are taken as they are, so that an interrupted run continues where it stopped.
    """

    processes: int = 1

    def call_shards(
        self, step: Step[...], staging: str, shards: Sequence[dict[str, Any]], **shared: Any
    ) -> list[Staged]:
        if self.processes == 1 or len(shards) == 1:
            return super().call_shards(step, staging, shards, **shared)
        started, found = time.monotonic(), dict[int, list[Staged]]()
        with (
            own_cores(self.processes),
            ProcessPoolExecutor(
                self.processes, multiprocessing.get_context("spawn"), initializer=end_with_command
            ) as pool,
        ):
            waiting = {
                pool.submit(step.compute, staging, **shared, **shard): place for place, shard in enumerate(shards)
            }
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                say(f"{step.name}: {len(found)} of {len(shards)} shards, {time.monotonic() - started:.0f} s")
        return [part for place in range(len(shards)) for part in found[place]]


@contextmanager
def own_cores(processes: int) -> Iterator[None]:
    """Processes that are started meanwhile take their part of the cores each."""
    threads = str(threads_of(os.cpu_count() or 1, processes))
    wanted = {
        "EMBAUDIT_WORKERS": str(processes),
        "RAYON_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "true",
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def say(line: str) -> None:
    """On the error stream: what is printed is the result."""
    print(line, file=sys.stderr, flush=True)


class Lines:
    """Says every twenty seconds how far a step is."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._began: dict[str, float] = {}
        self._said = time.monotonic()

    def advance(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        began = self._began.setdefault(label, now)
        self._done[label] = self._done.get(label, 0) + done
        if now - self._said > SECONDS_BETWEEN_LINES:
            self._said = now
            say(f"  {label}: {self._done[label]:,} of {total:,}, {now - began:.0f} s")

    def say(self, line: str, level: int = logging.INFO) -> None:
        say(line)

    def measured(self, what: str, seconds: float) -> None:
        say(f"{what}: {seconds:.0f} s")


@contextmanager
def with_lines() -> Iterator[None]:
    """Show progress in lines."""
    with shown_on(Lines()):
        yield
