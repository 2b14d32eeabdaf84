"""``embaudit compare``: compare checkpoints by their audits."""

from __future__ import annotations

import json
from pathlib import Path

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.pages.compare import as_json, comparison_page
from embaudit.pages.html import render
from embaudit.pages.sides import read_sides
from embaudit.pages.terminal import print_page
from embaudit.pages.write import write_file
from embaudit.system.address import Warehouse


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

    Figures measured on different texts, settings or versions, or on one side only, are counted but not compared.
    """
    sides = read_sides(warehouse_path(warehouse), (first, *others))
    if out is not None:
        write_file(render(comparison_page(sides)), out)
    if is_json:
        # ASCII only: a name may contain direction overrides.
        click.echo(json.dumps(as_json(sides), indent=1))
        return
    print_page(comparison_page(sides))
    if out is not None:
        click.echo(visible(f"Written: {out}"))
