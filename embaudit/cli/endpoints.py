"""Options of commands that ask an endpoint; and what is said before texts leave this machine."""

from __future__ import annotations

from collections.abc import Sequence

import click

from embaudit.cli.options import together
from embaudit.errors import UsageError
from embaudit.functions.endpoint.dialects import DIALECTS
from embaudit.functions.endpoint.recognise import is_address, is_loopback
from embaudit.masking import without_credentials

# What leaves with the user's own material, and what that means.
MATERIAL_LEAVES = (
    "the pairs, queries and documents, and a few hundred made-up ones",
    "your pairs and documents would leave this one",
)
# ``api``, ``model`` and ``yes``, of commands that ask endpoints.
endpoint_options = together(
    click.option(
        "--api",
        type=click.Choice(list(DIALECTS)),
        multiple=True,
        help="An endpoint's API; by default, recognised. Once for all endpoints, or once for each, in their order.",
    ),
    click.option(
        "--model", metavar="NAME", multiple=True, help="The model's name there, if it serves several. Likewise."
    ),
    click.option("--yes", is_flag=True, help="Send the texts to an endpoint on another machine without asking."),
)
# ``query_prompt`` and ``document_prompt``, of commands that ask endpoints for queries and documents.
role_options = together(
    click.option(
        "--query-prompt",
        metavar="TEXT",
        multiple=True,
        help="What the callers of an endpoint or a Python object put before queries. Once for all, or once for each.",
    ),
    click.option("--document-prompt", metavar="TEXT", multiple=True, help="The same before documents."),
)
# ``other``, ``with_dtype`` and those of an endpoint: what something is compared with.
other_options = together(
    click.option(
        "--with",
        "other",
        required=True,
        metavar="OTHER",
        help="What to compare with: an endpoint's address (http://localhost:8080), a Python object's name "
        "(python:MODULE:NAME), or a checkpoint.",
    ),
    endpoint_options,
    click.option(
        "--with-dtype",
        type=click.Choice(("float32", "bfloat16", "float16")),
        default="float32",
        show_default=True,
        help="The precision of OTHER, if it is a checkpoint.",
    ),
)


def say_that_texts_leave(given: Sequence[str], what: str, warning: str, *, is_agreed: bool) -> None:
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
        if not is_loopback(address) and not is_agreed:
            raise UsageError(
                f"{shown} is another machine: {warning}.",
                kept="Nothing was sent.",
                next_step="If that is meant, add --yes.",
            )
