"""Texts that leave this machine: where to is said before the first is sent, and another machine needs a yes."""

from __future__ import annotations

import click

from embaudit.endpoint.recognise import is_loopback
from embaudit.errors import UsageError
from embaudit.masking import without_credentials


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
