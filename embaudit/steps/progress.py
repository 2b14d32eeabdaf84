"""Progress of long steps: bars in a terminal if asked for, and whatever else watches (``reported_by``)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

SECONDS_BETWEEN_REPORTS = 5.0
# Called with the percentage that is done.
Report = Callable[[float], None]
# Begins a report under a label; None if nobody reads it.
Reporter = Callable[[str], Report | None]


class Display(Protocol):
    """What a terminal shows; bars with the same label add up over shards."""

    def advance(self, label: str, done: int, total: int) -> None: ...

    def say(self, line: str, level: int = logging.INFO) -> None: ...

    def measured(self, what: str, seconds: float) -> None: ...


class NoDisplay:
    """Where nobody is watching."""

    def advance(self, label: str, done: int, total: int) -> None:
        """Does nothing."""

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Does nothing."""

    def measured(self, what: str, seconds: float) -> None:
        """Does nothing."""


_display: Display = NoDisplay()
_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


@contextmanager
def shown_on(display: Display) -> Iterator[None]:
    """Let the tasks in this process report to a display."""
    global _display
    before, _display = _display, display
    try:
        yield
    finally:
        _display = before


@contextmanager
def reported_by(reporter: Reporter) -> Iterator[None]:
    """Let the steps in this block report their percentage, besides the display."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


def is_shown() -> bool:
    """Whether there is a display."""
    return type(_display) is not NoDisplay


def show(line: str, level: int = logging.INFO) -> None:
    """Show a line in the terminal.

    Args:
        level: of ``logging``; a warning is for those too who watch nothing.
    """
    _display.say(line, level)


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
    reporter = _reporter.get()
    report = reporter(label) if reporter is not None else None
    done, last = 0, time.monotonic()

    def advance(amount: int) -> None:
        nonlocal done, last
        done += amount
        _display.advance(label, amount, of_all or total)
        if report is not None and time.monotonic() - last > SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            report(min(100 * done / max(total, 1), 100.0))

    yield advance
    if report is not None:
        report(100.0)
