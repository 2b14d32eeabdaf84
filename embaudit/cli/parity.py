"""``embaudit parity``: is a checkpoint served as it was audited?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.leaving import say_that_texts_leave
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.printed import show_report
from embaudit.endpoint.dialects import DIALECTS
from embaudit.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE

if TYPE_CHECKING:
    from embaudit.request import AuditRequest

FILE = click.Path(exists=True, path_type=Path)


@click.command()
@request_options(*(name for name in CHECKPOINT_FIELDS if name not in ("dtype", "seed")))
@click.option(
    "--with",
    "other",
    required=True,
    metavar="OTHER",
    help="The address of an endpoint (http://localhost:8080), or another checkpoint.",
)
@click.option("--api", type=click.Choice(list(DIALECTS)), help="The endpoint's API; by default, recognised.")
@click.option("--model", metavar="NAME", help="The model's name there, if it serves several.")
@click.option(
    "--with-dtype",
    type=click.Choice(("float32", "bfloat16", "float16")),
    default="float32",
    show_default=True,
    help="The precision of another checkpoint.",
)
@click.option("--pairs", type=FILE, multiple=True, help="Your own scored pairs, a file per data set. Repeatable.")
@click.option(
    "--data", type=FILE, multiple=True, help="Your own judged queries, a folder in BEIR's layout. Repeatable."
)
@click.option("--no-explanation", is_flag=True, help="Say whether they differ, and do not search for the reason.")
@click.option("--yes", is_flag=True, help="Send the texts to an endpoint on another machine without asking.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Also write it as an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown.")
def parity(
    request: AuditRequest,
    other: str,
    api: str | None,
    model: str | None,
    with_dtype: str,
    pairs: tuple[Path, ...],
    data: tuple[Path, ...],
    no_explanation: bool,
    yes: bool,
    out: Path | None,
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Do CHECKPOINT and OTHER give the same vectors, and if not, how would CHECKPOINT have to be used to do so?

    Asks both for texts of every kind that servers get wrong, an endpoint also in batches, again, and in parallel. A key
    for the endpoint is read from EMBAUDIT_API_KEY. Exit code 0 if they are the same function, 1 if not, 2 if they could
    not be compared.
    """
    from embaudit.api.check import given_material
    from embaudit.api.parity import run
    from embaudit.endpoint.recognise import is_address
    from embaudit.page.parity import parity_page

    if is_address(other):
        say_that_texts_leave(
            other,
            "the pairs, queries and documents, and a few hundred made-up ones",
            "your pairs and documents would leave this one",
            is_agreed=yes,
        )
    report = run(
        request,
        other,
        given_material(pairs, data),
        api=api,
        model=model,
        dtype=with_dtype,
        with_explanation=not no_explanation,
        progress=lambda what: click.echo(f"Comparing {what} …", err=True),
    )
    show_report(parity_page(report), report.as_json() if as_json else None, out, as_markdown=as_markdown)
    codes = {"the same function": EXIT_DONE, "another function": EXIT_TRIPPED}
    return codes.get(report.verdict, EXIT_USAGE)
