"""Options of commands that ask an endpoint, and what is said before texts are sent to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from embaudit.endpoint.dialects import DIALECTS

Command = TypeVar("Command", bound=Callable[..., Any])


def endpoint_options(command: Command) -> Command:
    """``api``, ``model`` and ``yes``."""
    options = (
        click.option("--api", type=click.Choice(list(DIALECTS)), help="The endpoint's API; by default, recognised."),
        click.option("--model", metavar="NAME", help="The model's name there, if it serves several."),
        click.option("--yes", is_flag=True, help="Send the texts to an endpoint on another machine without asking."),
    )
    decorated: Any = command
    for option in reversed(options):
        decorated = option(decorated)
    return cast(Command, decorated)


def say_that_texts_leave(address: str, *, is_agreed: bool) -> None:
    """Say where texts are sent before the first is.

    Raises:
        UsageError: if that is another machine and nobody has agreed.
    """
    from embaudit.endpoint.recognise import is_loopback
    from embaudit.errors import UsageError
    from embaudit.masking import without_credentials

    shown = without_credentials(address)
    click.echo(
        f"Texts are sent to {shown}: the pairs, queries and documents, and a few hundred made-up ones.", err=True
    )
    if not is_loopback(address) and not is_agreed:
        raise UsageError(
            f"{shown} is another machine: your pairs and documents would leave this one.",
            kept="Nothing was sent.",
            next_step="If that is meant, add --yes.",
        )
