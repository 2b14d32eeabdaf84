"""``embaudit compare``: compare checkpoints by their audits, and answers with those before."""

from __future__ import annotations

import json
from pathlib import Path

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.pages.compare import as_json, comparison_page
from embaudit.pages.compare_answers import answers_page, compare_answers
from embaudit.pages.compare_answers import as_json as answers_json
from embaudit.pages.html import render
from embaudit.pages.sides import read_sides
from embaudit.pages.terminal import print_page
from embaudit.pages.write import write_file
from embaudit.system.address import Warehouse
from embaudit.words.errors import UsageError


@click.command()
@click.argument("first")
@click.argument("others", nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write it as an HTML page."
)
@click.option("--json", "is_json", is_flag=True, help="Print the result as JSON.")
@warehouse_option
def compare(first: str, others: tuple[str, ...], out: Path | None, is_json: bool, warehouse: Warehouse | None) -> None:
    """Compare OTHERS with FIRST. Each is a checkpoint, which stands for its newest result of each measure and question,
    or an audit (its id, the first digits, or latest).

    Or answers that were kept: a store, an endpoint or a checkpoint that was not audited stands for the newest answer to
    each question about it, an id for one; FIRST may be previous, for the answers before.

    Figures measured on different texts, settings or versions, or on one side only, are counted but not compared.
    """
    place, names = warehouse_path(warehouse), (first, *others)
    try:
        sides = read_sides(place, names)
        page, said = comparison_page(sides), as_json(sides)
    except UsageError:
        # What was audited comes first: only what was not is looked for among answers.
        compared = compare_answers(place, names)
        if compared is None:
            raise
        page, said = answers_page(compared), answers_json(compared)
    if out is not None:
        write_file(render(page), out)
    if is_json:
        # ASCII only: a name may contain direction overrides.
        click.echo(json.dumps(said, indent=1))
        return
    print_page(page)
    if out is not None:
        click.echo(visible(f"Written: {out}"))
