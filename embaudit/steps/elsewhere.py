"""Where parts of a work are computed: here, by processes of this command, or on a Dask cluster.

``EMBAUDIT_RUNNER`` and ``EMBAUDIT_WORKERS`` decide; docs/runners.md says what was tried, and why these were chosen.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import closing
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

from embaudit.steps.processes import WorkerProcesses
from embaudit.steps.workers import ClusterIsEmpty, DaskWorkers, require_dask, require_workers
from embaudit.system.settings import Settings
from embaudit.words.errors import MeasureError, UsageError

Part = TypeVar("Part")
Found = TypeVar("Found")
# Parts that are on their way for each worker: the next one is there when it has done one, and few are held in memory.
AHEAD = 2


class Expected(Protocol):
    """A result that comes."""

    def done(self) -> bool: ...

    def result(self) -> Any: ...


class Workers(Protocol):
    """What computes calls elsewhere."""

    @property
    def most(self) -> int:
        """How many at a time."""

    def submit(self, call: Callable[[Any], Any], argument: Any, /) -> Expected: ...

    def close(self) -> None: ...


def is_elsewhere() -> bool:
    """Whether other processes compute."""
    settings = Settings()
    return settings.workers > 1 or settings.runner == "dask"


def require_runner() -> None:
    """Refuse settings by which nothing can be computed, before anything is.

    Raises:
        UsageError: if Dask is not installed, or its cluster does not answer or has no worker; and in a worker that
            imports the script that started it.
    """
    settings = Settings()
    # As multiprocessing itself asks, but before the work that leads there.
    if is_elsewhere() and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "Worker processes import the script that starts them, and this one would start more of them there.",
            next_step='Put the call below if __name__ == "__main__": or unset EMBAUDIT_WORKERS and EMBAUDIT_RUNNER.',
        )
    if settings.runner == "dask":
        require_dask()
        if settings.runner_address:
            require_workers(settings.runner_address)


def in_order(
    parts: Iterable[Part],
    given: Callable[[Part], Any],
    *,
    here: Callable[[Any], Found],
    elsewhere: Callable[[Any], Found] | None,
) -> Generator[tuple[Part, Found], None, None]:
    """Each part once, in order, with what is computed of it; a few are on their way to workers at a time.

    To be closed (``contextlib.closing``): no worker outlives that.

    Args:
        given: what of a part is computed with, and is sent.
        here, elsewhere: the same in this process and in a worker; None if no worker can.

    Raises:
        Exception: what a computation raises, or what ``lost_workers`` knows.
    """
    parts = iter(parts)
    settings = Settings()
    first: list[Part] = []
    if elsewhere is not None and is_elsewhere():
        first = list(islice(parts, max(2, settings.workers)))
    parts = chain(first, parts)
    if elsewhere is None or len(first) < 2:
        # A worker would take longer to start.
        for part in parts:
            yield part, here(given(part))
        return
    most = min(settings.workers, len(first))
    workers: Workers = DaskWorkers(most) if settings.runner == "dask" else WorkerProcesses(most)
    with closing(workers):
        waiting: deque[tuple[Part, Expected]] = deque()
        for part in parts:
            waiting.append((part, workers.submit(elsewhere, given(part))))
            # What is done is handed on before more is read: an interrupt loses little.
            while waiting and (len(waiting) >= AHEAD * workers.most or waiting[0][1].done()):
                part, expected = waiting.popleft()
                yield part, expected.result()
        for part, expected in waiting:
            yield part, expected.result()


def lost_workers(error: BaseException, what: str, kept: str) -> MeasureError | None:
    """The error of a lost worker or cluster, in one paragraph; None if the error was raised by what was computed.

    Args:
        what: was computed.
        kept: what is still there.
    """
    lost = _how_lost(error)
    if lost is None:
        return None
    return MeasureError(
        f"{lost} while it computed {what}.",
        kept=kept,
        next_step="Run the same command again: it continues where it stopped. "
        "Where memory was short, a lower EMBAUDIT_WORKERS takes less.",
    )


def _how_lost(error: BaseException) -> str | None:
    name, module = type(error).__name__, type(error).__module__
    if isinstance(error, ClusterIsEmpty):
        return "The last worker of the Dask cluster was lost"
    if isinstance(error, BrokenExecutor) or name == "KilledWorker":
        return "A worker process died (the system may have killed it for its memory)"
    if module.startswith("distributed.") or isinstance(error, CancelledError):
        return f"The Dask cluster was lost ({name})"
    return None
