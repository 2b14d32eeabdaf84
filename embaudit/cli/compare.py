"""``embaudit compare``: what did a checkpoint gain and lose against another?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from embaudit.address import Warehouse
from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.page.compare import as_json, comparison_page
from embaudit.page.html import render
from embaudit.page.sides import read_sides
from embaudit.page.terminal import print_page
from embaudit.page.write import put


@click.command()
@click.argument("first")
@click.argument("others", nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write it as an HTML page, too."
)
@click.option("--json", "is_json", is_flag=True, help="Print it as JSON.")
@warehouse_option
def compare(first: str, others: tuple[str, ...], out: Path | None, is_json: bool, warehouse: Warehouse | None) -> None:
    """Compare OTHERS with FIRST: audits by id, first digits or latest, or checkpoints, each by its newest audit.

    Figures of other texts, settings or versions are named, and not subtracted.
    """
    sides = read_sides(warehouse_path(warehouse), (first, *others))
    if out is not None:
        put(render(comparison_page(sides)), out)
    if is_json:
        # Everything but ASCII as escapes: a name may hold signs that turn a terminal's text around.
        click.echo(json.dumps(as_json(sides), indent=1))
        return
    print_page(comparison_page(sides))
    if out is not None:
        click.echo(visible(f"Written: {out}"))
