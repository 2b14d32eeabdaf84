"""Progress of an audit in a notebook: a line per measure, and below it what is being computed; elsewhere, in a log."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TextIO

SECONDS_BETWEEN_UPDATES = 0.5
LOGGER = logging.getLogger("embaudit")


class NotebookDisplay:
    """Lines of a cell's output; a carriage return starts the last one anew, in every kind of notebook."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._done: dict[tuple[str, int], int] = {}
        self._shown, self._last = "", 0.0

    def advance(self, label: str, done: int, total: int) -> None:
        """Show a step's share, not more often than a person can read it."""
        # Stages of a search may have one name.
        bar = (label, total)
        before = self._done.get(bar, 0)
        self._done[bar] = done if before >= total else before + done
        if time.monotonic() - self._last > SECONDS_BETWEEN_UPDATES:
            self._last = time.monotonic()
            self._write(f"{label}: {min(self._done[bar] / max(total, 1), 1):.0%}")

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Show a line that stays, whatever its level."""
        self._write(line)
        self._shown = ""
        self._output.write("\n")

    def measured(self, what: str, seconds: float) -> None:
        """Show that a measure is done."""
        self.say(f"{what}: {seconds:,.0f} s")

    def clear(self) -> None:
        """Remove the last line, which is about nothing any more."""
        self._write("")

    def _write(self, line: str) -> None:
        # Spaces over what was longer.
        self._output.write(f"\r{line}{' ' * (len(self._shown) - len(line))}" + ("\r" if not line else ""))
        self._output.flush()
        self._shown = line


class ProgramLog:
    """What a program is told, whose output is its own: lines of the logger ``embaudit``, and warnings as Python's."""

    def advance(self, label: str, done: int, total: int) -> None:
        """Does nothing."""

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Log a line. A warning is seen where no logging is set up, too."""
        if level >= logging.WARNING:
            warnings.warn(line, stacklevel=2)
        else:
            LOGGER.info(line)

    def measured(self, what: str, seconds: float) -> None:
        """Log that a measure is done."""
        LOGGER.info("%s: %.0f s", what, seconds)


def is_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    return "ipykernel" in sys.modules


@contextmanager
def shown_to_caller() -> Iterator[None]:
    """Show progress in a notebook, and write it to the log of any other program, unless something shows it already."""
    from embaudit.steps.progress import is_shown, shown_on

    if not is_notebook():
        with nullcontext() if is_shown() else shown_on(ProgramLog()):
            yield
        return
    display = NotebookDisplay(sys.stdout)
    try:
        with shown_on(display):
            yield
    finally:
        display.clear()
