"""Progress in a terminal: one bar per step with rate and remaining time; elsewhere a line per measure and minute."""

from __future__ import annotations

import logging
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

# Between two lines where there are no bars: a log says that something is still going on, and does not fill up.
SECONDS_BETWEEN_LINES = 60.0


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


class TerminalDisplay:
    """One bar per label and total; shards, which have both in common, share a bar.

    Args:
        show_steps: where there are no bars, also print a line per label (``--logs``).
    """

    def __init__(self, console: Console, *, show_steps: bool = False) -> None:
        self._console = console
        self._has_step_lines = show_steps and not console.is_terminal
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[tuple[str, int], TaskID] = {}
        self._done: dict[tuple[str, int], int] = {}
        self._started: dict[tuple[str, int], float] = {}
        self._last_line = time.monotonic()

    def advance(self, label: str, done: int, total: int) -> None:
        """Report progress; the first call for a label, or after all of it was done, creates a bar."""
        # Stages of a search may have one name, and even one total.
        bar = (label, total)
        if self._done.get(bar, total) >= total:
            self._tasks[bar] = self._bars.add_task(label, total=total)
            self._done[bar], self._started[bar] = 0, time.monotonic()
        self._done[bar] += done
        self._bars.advance(self._tasks[bar], done)
        if self._has_step_lines and self._done[bar] >= total > self._done[bar] - done:
            # The clock misses the work before the first call (the first batch), so a rate would be wrong.
            self.say(f"{label}: {total:,} in {time.monotonic() - self._started[bar]:.0f} s")
        elif not self._console.is_terminal and time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self.say(f"{label}: {self._done[bar]:,} of {total:,}")

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Print a line above the bars, whatever its level."""
        self._last_line = time.monotonic()
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def measured(self, what: str, seconds: float) -> None:
        """Print that a measure is done, where no bar shows it."""
        if not self._console.is_terminal:
            self.say(f"{what}: {seconds:,.0f} s")

    def __enter__(self) -> TerminalDisplay:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
