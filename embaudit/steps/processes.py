"""Calls that worker processes of this command compute; a worker that dies costs the one call that it computed.

``ProcessPoolExecutor`` gives up every call of a pool when one process dies, and may wait forever if that one was being
sent more than a pipe holds (Python 3.11, gh-94777). Here each worker has a thread and a pipe of its own.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from embaudit.steps.workers import end_with_command
from embaudit.words.errors import EmbauditError, one_line

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
