"""Progress of an audit in a notebook: a line per measure, and below it what is being computed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

SECONDS_BETWEEN_UPDATES = 0.5


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

    def say(self, line: str) -> None:
        """Show a line that stays."""
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


def is_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    return "ipykernel" in sys.modules


@contextmanager
def shown_in_notebook() -> Iterator[None]:
    """Show progress if this is a notebook: elsewhere, a program's output is its own."""
    if not is_notebook():
        yield
        return
    from embaudit.steps.progress import shown_on

    display = NotebookDisplay(sys.stdout)
    try:
        with shown_on(display):
            yield
    finally:
        display.clear()
