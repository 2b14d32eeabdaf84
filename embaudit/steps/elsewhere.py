"""Where parts of a work are computed: here, by processes of this command, or on a Dask cluster.

``EMBAUDIT_RUNNER`` and ``EMBAUDIT_WORKERS`` decide; docs/runners.md says what was tried, and why these were chosen.

Calls that worker processes of this command compute; a worker that dies costs the one call that it computed.

``ProcessPoolExecutor`` gives up every call of a pool when one process dies, and may wait forever if that one was being
sent more than a pipe holds (Python 3.11, gh-94777). Here each worker has a thread and a pipe of its own.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

from embaudit.steps.workers import ClusterIsEmpty, DaskWorkers, end_with_command, require_dask, require_workers
from embaudit.system.settings import Settings
from embaudit.words.errors import EmbauditError, MeasureError, UsageError, one_line

# Workers that may die of one call before it is given up: the same as Dask's.
TRIES = 4
Call = Callable[[Any], Any]


class WorkerDied(BrokenExecutor):
    """One call killed as many workers as it may."""


class WorkerProcesses:
    """Up to so many processes, each started when there is a call for it.

    None of them sees Ctrl-C, and none outlives ``close`` or the command.

    Args:
        most: how many compute at a time.
    """

    def __init__(self, most: int) -> None:
        # If it started only with the first process, it would unblock the signal again (Python 3.11 to 3.14).
        resource_tracker.ensure_running()
        self.most = most
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._own = threading.local()
        self._is_closed = False
        # A process inherits the blocked signals of the thread that starts it.
        hold = partial(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})
        self._threads = ThreadPoolExecutor(most, "of a worker process", initializer=hold)

    def submit(self, call: Call, argument: Any) -> Future[Any]:
        """What a function gives of an argument, computed by the next free worker; both must be picklable.

        A call whose worker dies is computed again; ``WorkerDied`` if all that try it do.
        """
        return self._threads.submit(self._ask, call, argument)

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        with self._lock:
            self._is_closed = True
        for worker in self._workers:
            worker.process.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.end()

    def _ask(self, call: Call, argument: Any) -> Any:
        for _ in range(TRIES):
            worker = self._worker()
            try:
                is_found, answer = worker.ask(call, argument)
            except (EOFError, OSError):
                worker.end()
                self._own.worker = None
                continue
            if is_found:
                return answer
            raise answer
        raise WorkerDied(f"{TRIES} workers died of one call")

    def _worker(self) -> _Worker:
        """This thread's; a new one if there is none."""
        worker: _Worker | None = getattr(self._own, "worker", None)
        with self._lock:
            if self._is_closed:
                raise CancelledError
            if worker is None:
                worker = self._own.worker = _Worker()
                self._workers.append(worker)
        return worker


class _Worker:
    """A process, and the pipe by which it is asked."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._asked, given = context.Pipe()
        self.process = context.Process(target=_serve, args=(given,), daemon=True)
        self.process.start()
        # With the only other copy closed, its death is the end of what can be read.
        given.close()

    def ask(self, call: Call, argument: Any) -> tuple[bool, Any]:
        """Whether the call gave something, and what; or its error.

        Raises:
            EOFError, OSError: if the process is dead.
        """
        self._asked.send((call, argument))
        found: tuple[bool, Any] = self._asked.recv()
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self._asked.close()


def _serve(given: Connection) -> None:
    """What a worker does: answers one call after another, until there are no more."""
    end_with_command()
    while True:
        try:
            asked = given.recv_bytes()
        except EOFError:
            return
        try:
            call, argument = pickle.loads(asked)
            answer = True, call(argument)
        except Exception as error:  # whatever a call raises is its answer
            answer = False, _that_travels(error)
        given.send(answer)


def _that_travels(error: Exception) -> Exception:
    """The error as another process can read it, with its traceback if it is nobody's fault but ours."""
    if not isinstance(error, EmbauditError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # its class may do anything
        return RuntimeError(f"{type(error).__name__}: {one_line(error)}")
    return error


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
