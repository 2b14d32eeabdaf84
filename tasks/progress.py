"""Progress of long tasks: bars in a terminal if asked for, and progress artifacts in the Prefect UI."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger

SECONDS_BETWEEN_UPDATES = 5.0
# How long to wait before calling an unreachable server again: each call spends a minute on Prefect's own retries.
SECONDS_OF_SILENCE = 600.0


class Display(Protocol):
    """What a terminal shows; bars with the same label add up over shards."""

    def advance(self, label: str, done: int, total: int) -> None: ...

    def say(self, line: str) -> None: ...

    def measured(self, what: str, seconds: float) -> None: ...


class _NoDisplay:
    def advance(self, label: str, done: int, total: int) -> None:
        """Does nothing: nobody is watching this process."""

    def say(self, line: str) -> None:
        """Does nothing."""

    def measured(self, what: str, seconds: float) -> None:
        """Does nothing."""


_display: Display = _NoDisplay()
_silent_until = 0.0


@contextmanager
def shown_on(display: Display) -> Iterator[None]:
    """Let the tasks in this process report to a display."""
    global _display
    before, _display = _display, display
    try:
        yield
    finally:
        _display = before


def show(line: str) -> None:
    """Show a line in the terminal."""
    _display.say(line)


def say(line: str) -> None:
    """Show a line in the terminal and write it to the flow run's log."""
    show(line)
    get_run_logger().info(line)


@contextmanager
def measuring(what: str) -> Iterator[None]:
    """Show when a measure is done, and how long it took."""
    started = time.monotonic()
    yield
    _display.measured(what, time.monotonic() - started)


def shard_done(label: str, shards: int) -> None:
    """Report that one of ``shards`` shards is done; worker processes, which compute them, have no display."""
    _display.advance(label, 1, shards)


@contextmanager
def tracked(label: str, total: int, of_all: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with each amount of work done.

    Args:
        total: work of this task.
        of_all: work of all tasks that share the label (shards), which is what the terminal's bar counts.
    """
    artifact = _start_artifact(label)
    done, last = 0, time.monotonic()

    def advance(amount: int) -> None:
        nonlocal done, last
        done += amount
        _display.advance(label, amount, of_all or total)
        if artifact is not None and time.monotonic() - last > SECONDS_BETWEEN_UPDATES:
            last = time.monotonic()
            _update_artifact(artifact, 100 * done / max(total, 1))

    yield advance
    if artifact is not None:
        _update_artifact(artifact, 100.0)


def _start_artifact(label: str) -> UUID | None:
    if TaskRunContext.get() is None:
        return None
    return _told(lambda: create_progress_artifact(progress=0.0, description=label))


def _update_artifact(artifact: UUID, percent: float) -> None:
    _told(lambda: update_progress_artifact(artifact_id=artifact, progress=min(percent, 100.0)))


def _told(call: Callable[[], object]) -> UUID | None:
    """Report the progress of a task to the server. An unreachable server must not fail the task."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return None
    try:
        answer = call()
    except (httpx.HTTPError, RuntimeError):
        _silent_until = time.monotonic() + SECONDS_OF_SILENCE
        return None
    return answer if isinstance(answer, UUID) else None
