"""``embaudit check``: may this checkpoint, or this served model, be relied on? The first minute of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.leaving import MATERIAL_LEAVES, endpoint_options, say_that_texts_leave
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.printed import show_report
from embaudit.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE

if TYPE_CHECKING:
    from embaudit.request import AuditRequest

FILE = click.Path(exists=True, path_type=Path)


@click.command()
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name not in ("dtype", "seed")), "query_prompt", "document_prompt"
)
@click.option("--base", metavar="CHECKPOINT", help="What it was tuned from, or its last revision: say what changed.")
@click.option("--pairs", type=FILE, multiple=True, help="Your own scored pairs, a file per data set. Repeatable.")
@click.option(
    "--data", type=FILE, multiple=True, help="Your own judged queries, a folder in BEIR's layout. Repeatable."
)
@endpoint_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Also write it as an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown, for a pull request or model card.")
def check(
    request: AuditRequest,
    base: str | None,
    pairs: tuple[Path, ...],
    data: tuple[Path, ...],
    api: str | None,
    model: str | None,
    yes: bool,
    out: Path | None,
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Is CHECKPOINT the network that was trained, declared right, and better than word overlap?

    CHECKPOINT may also be the address of an endpoint (http://localhost:8080): then it is told from its vectors whether
    they can be used, whether a text has one vector however it is asked, how much of a long text is read, and what they
    are worth. A key is read from EMBAUDIT_API_KEY.

    Takes seconds and needs no server or warehouse. Exit code 0 if it may be served, 1 if not, 2 if a part could not be
    checked.
    """
    from embaudit.api.check import given_material, run
    from embaudit.endpoint.recognise import is_address
    from embaudit.page.check import check_page

    if is_address(request.checkpoint):
        say_that_texts_leave(request.checkpoint, *MATERIAL_LEAVES, is_agreed=yes)
    report = run(request, given_material(pairs, data), base, api=api, model=model)
    show_report(check_page(report), report.as_json() if as_json else None, out, as_markdown=as_markdown)
    codes = {"do not serve": EXIT_TRIPPED, "could not be checked": EXIT_USAGE}
    return codes.get(report.verdict, EXIT_DONE)
