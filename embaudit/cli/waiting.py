"""What is said to whoever waits: where texts are sent, before the first is, and how much is done.

A question says it in lines; audits have one bar per step with rate and remaining time, and elsewhere than in a terminal
a line per measure and minute.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType

import click
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

from embaudit.embedders.endpoint.recognise import is_address, is_loopback
from embaudit.questions.question import SentTexts
from embaudit.words.errors import UsageError
from embaudit.words.masking import without_credentials
from embaudit.words.sentences import duration, visible

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_ROWS = 5.0
# What is left of a plan is said anew if it is so many times as long, or as short, as was said.
SAME_PLAN = 1.5


def say_that_texts_leave(sent: SentTexts, *, is_agreed: bool) -> None:
    """Say where texts are sent before the first is; ask, if that is another machine.

    Raises:
        UsageError: if it is another machine, and nobody agreed.
    """
    for address in filter(is_address, dict.fromkeys(map(str, sent.to))):
        shown = without_credentials(address)
        click.echo(f"Texts are sent to {shown}: {sent.what}.", err=True)
        if not is_loopback(address) and not is_agreed:
            raise UsageError(
                f"{shown} is another machine: {sent.warning}.",
                kept="Nothing was sent.",
                next_step="If that is meant, add --yes.",
            )


def say(line: str) -> None:
    """Say something on stderr to whoever waits."""
    click.echo(visible(line), err=True)


def time_left() -> Callable[..., None]:
    """Says on stderr, every few seconds, how much is done of what a slow function is asked, and how long is left.

    How long is said once, and again if it turns out to be half as long again, or less by as much.
    """
    last = time.monotonic()
    # Of what is asked for now: which, how much of it was done when it was first told, and when that was.
    plan: tuple[str, int] = ("", 0)
    before, begun, is_said = 0, last, False
    # When a whole plan ends, as it was said last.
    end: float | None = None

    def told(what: str, done: int, total: int, seconds: float | None = None) -> None:
        nonlocal last, plan, before, begun, is_said, end
        now = time.monotonic()
        if seconds is not None:
            if now - last < SECONDS_BETWEEN_LINES:
                return
            last = now
            # Nobody plans by seconds.
            short = SECONDS_BETWEEN_LINES
            is_off = end is None or not 1 / SAME_PLAN <= (seconds + short) / (max(0.0, end - now) + short) <= SAME_PLAN
            end = now + seconds if is_off else end
            left = f", about {duration(seconds)} left" if is_off else ""
            click.echo(f"{what[0].upper()}{what[1:]}: {done:,} of about {total:,}{left} …", err=True)
            return
        if (what, total) != plan or done <= before:
            # Another rate: that of what came before says nothing of it.
            plan, before, begun, is_said = (what, total), done, now, False
            return
        if now - last < SECONDS_BETWEEN_LINES:
            return
        last = now
        left = "" if is_said else f", about {duration((now - begun) / (done - before) * (total - done))} left"
        is_said = True
        click.echo(f"{what[0].upper()}{what[1:]}: {done:,} of {total:,}{left} …", err=True)

    return told


def progress_lines() -> Callable[[str, int, int | None], None]:
    """Says on stderr what is done, every few seconds."""
    done: dict[str, int] = {}
    of_what: dict[str, int | None] = {}
    last = time.monotonic()

    def told(what: str, more: int, total: int | None) -> None:
        nonlocal last
        if total != of_what.get(what, total) or (total and done.get(what, 0) >= total):
            # The same is done once more, of other texts.
            done[what] = 0
        of_what[what] = total
        done[what] = done.get(what, 0) + more
        if time.monotonic() - last < SECONDS_BETWEEN_ROWS:
            return
        last = time.monotonic()
        of = f" of {total:,}" if total else ""
        click.echo(f"{what[:1].upper()}{what[1:]}: {done[what]:,}{of} …" if more else f"Looking for {what} …", err=True)

    return told


# Between two lines where there are no bars: a log says that something is still going on, and does not fill up.
SECONDS_BETWEEN_LOG_LINES = 60.0


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
        elif not self._console.is_terminal and time.monotonic() - self._last_line >= SECONDS_BETWEEN_LOG_LINES:
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
