"""``embaudit report``: write an audit as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.pages.write import write_page
from embaudit.system.address import Warehouse
from embaudit.system.settings import Settings


@click.command()
@click.argument("audit", required=False)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output file.  [default: reports/AUDIT.html in EMBAUDIT_HOME]",
)
@warehouse_option
def report(audit: str | None, out: Path | None, warehouse: Warehouse | None) -> None:
    """Write AUDIT as one self-contained HTML page: a checkpoint's newest results, by its name; or one audit, by its id,
    first digits, or latest, the default.
    """
    click.echo(visible(write_page(warehouse_path(warehouse), audit or "latest", Settings().reports, out).path))
