"""Progress in a terminal: one bar per step with rate and remaining time; plain lines if it is not a terminal."""

from __future__ import annotations

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


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


class TerminalDisplay:
    """One bar per label; shards with the same label share a bar."""

    def __init__(self, console: Console) -> None:
        self._console = console
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
        self._tasks: dict[str, TaskID] = {}
        self._done: dict[str, int] = {}
        self._started: dict[str, float] = {}

    def advance(self, label: str, done: int, total: int) -> None:
        """Report progress; the first call for a label creates its bar."""
        if label not in self._tasks:
            self._tasks[label] = self._bars.add_task(label, total=total)
            self._done[label], self._started[label] = 0, time.monotonic()
        self._done[label] += done
        self._bars.advance(self._tasks[label], done)
        if not self._console.is_terminal and self._done[label] >= total > self._done[label] - done:
            # The clock misses the work before the first call (the first batch), so a rate would be wrong.
            seconds = time.monotonic() - self._started[label]
            self._console.print(f"{label}: {total:,} in {seconds:.0f} s", highlight=False)

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> TerminalDisplay:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
