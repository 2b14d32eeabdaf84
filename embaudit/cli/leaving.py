"""Texts that leave this machine: where to is said before the first is sent, and another machine needs a yes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from embaudit.endpoint.dialects import DIALECTS
from embaudit.endpoint.recognise import is_loopback
from embaudit.errors import UsageError
from embaudit.masking import without_credentials

Command = TypeVar("Command", bound=Callable[..., Any])
# What leaves with the user's own material, and what that means.
MATERIAL_LEAVES = (
    "the pairs, queries and documents, and a few hundred made-up ones",
    "your pairs and documents would leave this one",
)


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


def say_that_texts_leave(address: str, what: str, warning: str, *, is_agreed: bool) -> None:
    """Say where texts are sent before the first is; ask, if that is another machine.

    Args:
        what: is sent, as the end of "Texts are sent to …: ".
        warning: what that means if it is another machine, as the end of a sentence.

    Raises:
        UsageError: if it is another machine, and nobody agreed.
    """
    shown = without_credentials(address)
    click.echo(f"Texts are sent to {shown}: {what}.", err=True)
    if not is_loopback(address) and not is_agreed:
        raise UsageError(
            f"{shown} is another machine: {warning}.",
            kept="Nothing was sent.",
            next_step="If that is meant, add --yes.",
        )
