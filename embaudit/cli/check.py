"""``embaudit check``: may this checkpoint, or this served model, be relied on? The first minute of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import MATERIAL_LEAVES, EndpointOptions, asks_functions, say, time_left
from embaudit.cli.options import CHECKPOINT_FIELDS, golden_options, material_options, request_options
from embaudit.cli.printed import OutputOptions, ends_in_page

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest


@click.command()
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name not in ("dtype", "seed")), "query_prompt", "document_prompt"
)
@click.option("--base", metavar="CHECKPOINT", help="What it was tuned from, or its last revision: say what changed.")
@click.option(
    "--files",
    "files_only",
    is_flag=True,
    help="Run nothing: look at settings, tokenizer and weights alone, of a checkpoint of any size, as fast as they are "
    "read.",
)
@material_options
@golden_options
@click.option(
    "--max-texts",
    type=click.IntRange(min=20),
    metavar="N",
    help="Ask an endpoint for so many of the pairs, queries and documents. By default, for all.",
)
@click.option("--card", "is_card", is_flag=True, help="Print a block for a model card, with the verdict as its badge.")
@asks_functions(keeps=True)
@ends_in_page
def check(
    request: AuditRequest,
    base: str | None,
    files_only: bool,
    pairs: tuple[Path, ...],
    data: tuple[Path, ...],
    golden: Path | None,
    corpus: str | None,
    asked: EndpointOptions,
    max_texts: int | None,
    is_card: bool,
    shown: OutputOptions,
) -> int:
    """Is CHECKPOINT the network that was trained, declared right, and better than word overlap?

    CHECKPOINT may also be the address of an endpoint (http://localhost:8080): then it is told from its vectors whether
    they can be used, whether a text has one vector however it is asked, how much of a long text is read, and what they
    are worth. A key is read from EMBAUDIT_API_KEY. The same is told of a Python object (python:MODULE:NAME) and of a
    static model.

    Takes seconds and needs no server or warehouse. Exit code 0 if it may be served, 1 if not, 2 if a part could not be
    checked, or if Ctrl-C stopped it: then the verdict is on what ran. With --files, exit code 0 says only that nothing
    was found wrong in the files.
    """
    from embaudit.api.check import given_material, require_files_alone, run

    if files_only:
        require_files_alone(base=base, pairs=pairs, data=data, golden=golden)
    asked.say_that_texts_leave([request.checkpoint], *MATERIAL_LEAVES)
    report = run(
        request,
        given_material(pairs, data, golden=golden, corpus=corpus),
        base,
        asked=asked.of(request.checkpoint)[0],
        most_texts=max_texts,
        say=say,
        told=time_left(),
        files_only=files_only,
        keeps_what_ran=True,
    )
    if is_card:
        from datetime import UTC, datetime

        from embaudit.pages.card import card_of

        click.echo(card_of(report, datetime.now(UTC).date()), nl=False)
        return report.exit_code
    return shown.show(report)
