"""Options of commands that ask functions whose files nobody sees; and what is said before texts leave this machine."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from embaudit.cli.options import Command, together
from embaudit.cli.shown import visible
from embaudit.embedders.endpoint.hosted import DIALECTS
from embaudit.embedders.endpoint.recognise import is_address, is_loopback
from embaudit.words.errors import UsageError
from embaudit.words.masking import without_credentials
from embaudit.words.shown import duration

if TYPE_CHECKING:
    from embaudit.embedders.opened import CallOptions, Given

SECONDS_BETWEEN_LINES = 10.0
# What is left of a plan is said anew if it is so many times as long, or as short, as was said.
SAME_PLAN = 1.5
# What leaves with the user's own material, and what that means.
MATERIAL_LEAVES = (
    "the pairs, queries and documents, and a few hundred made-up ones",
    "your pairs and documents would leave this one",
)
# Of all commands; of those that ask in roles; of those that keep what they got.
GENERAL = (
    click.option(
        "--api",
        type=click.Choice(list(DIALECTS)),
        multiple=True,
        help="An endpoint's API; by default, recognised. Once for all endpoints, or once for each, in their order.",
    ),
    click.option(
        "--model", metavar="NAME", multiple=True, help="The model's name there, if it serves several. Likewise."
    ),
    click.option(
        "--dimensions",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many numbers an endpoint is asked for in a vector, if its API has a field for that.",
    ),
    click.option(
        "--field",
        "fields",
        metavar="NAME=VALUE",
        multiple=True,
        help="Another field of the request to an endpoint. Repeatable.",
    ),
    click.option(
        "--requests-per-minute",
        "per_minute",
        type=click.IntRange(min=1),
        metavar="N",
        help="Ask an endpoint no more often. By default, as fast as it answers.",
    ),
    click.option("--yes", is_flag=True, help="Send the texts to an endpoint on another machine without asking."),
)
ROLES = (
    click.option(
        "--query-prompt",
        metavar="TEXT",
        multiple=True,
        help="What the callers of an endpoint or a Python object put before queries. Once for all, or once for each.",
    ),
    click.option("--document-prompt", metavar="TEXT", multiple=True, help="The same before documents."),
    click.option(
        "--query-field",
        "query_fields",
        metavar="NAME=VALUE",
        multiple=True,
        help="A field by which an endpoint is told that texts are queries. Repeatable. By default, as its API has it.",
    ),
    click.option(
        "--document-field", "document_fields", metavar="NAME=VALUE", multiple=True, help="The same of documents."
    ),
)
KEEPING = (
    click.option(
        "--fresh", is_flag=True, help="Forget the vectors that an endpoint gave before, and ask for all of them again."
    ),
)
# ``other`` and ``with_dtype``: what something is compared with.
other_options = together(
    click.option(
        "--with",
        "other",
        required=True,
        metavar="OTHER",
        help="What to compare with: an endpoint's address (http://localhost:8080), a Python object's name "
        "(python:MODULE:NAME), or a checkpoint.",
    ),
    click.option(
        "--with-dtype",
        type=click.Choice(("float32", "bfloat16", "float16")),
        default="float32",
        show_default=True,
        help="The precision of OTHER, if it is a checkpoint.",
    ),
)


@dataclass(frozen=True)
class EndpointOptions:
    """How the user wants functions to be asked that are no checkpoints."""

    yes: bool
    settings: dict[str, Any]

    def of(self, *given: Given) -> tuple[CallOptions, ...]:
        """How each of these is asked."""
        from embaudit.embedders.opened import asked_of

        return asked_of(given, **self.settings)

    def say_that_texts_leave(self, given: Sequence[str], what: str, warning: str) -> None:
        """Say where texts are sent before the first is; ask, if that is another machine.

        Args:
            given: functions; those that are no endpoint get no word.
            what: is sent, as the end of "Texts are sent to …: ".
            warning: what that means if it is another machine, as the end of a sentence.

        Raises:
            UsageError: if it is another machine, and nobody agreed.
        """
        for address in filter(is_address, dict.fromkeys(given)):
            shown = without_credentials(address)
            click.echo(f"Texts are sent to {shown}: {what}.", err=True)
            if not is_loopback(address) and not self.yes:
                raise UsageError(
                    f"{shown} is another machine: {warning}.",
                    kept="Nothing was sent.",
                    next_step="If that is meant, add --yes.",
                )


def asks_functions(*, in_roles: bool = False, keeps: bool = False) -> Callable[[Command], Command]:
    """Options of a command that takes any function; it receives them as ``asked``.

    Args:
        in_roles: whether it asks for queries and documents.
        keeps: whether what an endpoint gives is kept for the next time.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(yes: bool, **given: Any) -> Any:
            settings = {name: given.pop(name) for name in SETTINGS if name in given}
            return command(asked=EndpointOptions(yes, settings), **given)

        options = together(*GENERAL, *(ROLES if in_roles else ()), *(KEEPING if keeps else ()))
        return options(wrapper)  # type: ignore[return-value]

    return decorate


SETTINGS = (
    *("api", "model", "dimensions", "fields", "per_minute", "fresh"),
    *("query_prompt", "document_prompt", "query_fields", "document_fields"),
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
