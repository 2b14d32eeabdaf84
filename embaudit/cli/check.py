"""``embaudit check``: may this checkpoint, or this served model, be relied on? The first minute of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import MATERIAL_LEAVES, endpoint_options, say_that_texts_leave
from embaudit.cli.options import CHECKPOINT_FIELDS, material_options, request_options
from embaudit.cli.printed import Shown, ends_in_page
from embaudit.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE

if TYPE_CHECKING:
    from embaudit.request import AuditRequest


@click.command()
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name not in ("dtype", "seed")), "query_prompt", "document_prompt"
)
@click.option("--base", metavar="CHECKPOINT", help="What it was tuned from, or its last revision: say what changed.")
@material_options
@endpoint_options
@ends_in_page
def check(
    request: AuditRequest,
    base: str | None,
    pairs: tuple[Path, ...],
    data: tuple[Path, ...],
    api: tuple[str, ...],
    model: tuple[str, ...],
    yes: bool,
    shown: Shown,
) -> int:
    """Is CHECKPOINT the network that was trained, declared right, and better than word overlap?

    CHECKPOINT may also be the address of an endpoint (http://localhost:8080): then it is told from its vectors whether
    they can be used, whether a text has one vector however it is asked, how much of a long text is read, and what they
    are worth. A key is read from EMBAUDIT_API_KEY. The same is told of a Python object (python:MODULE:NAME) and of a
    static model.

    Takes seconds and needs no server or warehouse. Exit code 0 if it may be served, 1 if not, 2 if a part could not be
    checked.
    """
    from embaudit.api.check import given_material, run
    from embaudit.checking.page import check_page

    say_that_texts_leave([request.checkpoint], *MATERIAL_LEAVES, is_agreed=yes)
    report = run(request, given_material(pairs, data), base, api=api, model=model)
    shown.show(check_page(report), report)
    codes = {"do not serve": EXIT_TRIPPED, "could not be checked": EXIT_USAGE}
    return codes.get(report.verdict, EXIT_DONE)
