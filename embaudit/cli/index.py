"""``embaudit index``: write one HTML page about all audits of a warehouse."""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.pages.write import write_index
from embaudit.system.address import Warehouse
from embaudit.system.settings import Settings


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output file; links to the audits' pages in the same folder.  [default: reports/index.html in EMBAUDIT_HOME]",
)
@warehouse_option
def index(out: Path | None, warehouse: Warehouse | None) -> None:
    """Write one HTML page about all audits: each checkpoint's state, open findings, regressions and failures."""
    click.echo(visible(write_index(warehouse_path(warehouse), Settings().reports, out)))
