"""``embaudit show``: show one audit's summary."""

from __future__ import annotations

import json

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.pages.audit import state_page
from embaudit.pages.facts import read_state
from embaudit.pages.terminal import print_page
from embaudit.system.address import Warehouse
from embaudit.warehouse.named import LATEST


@click.command()
@click.argument("audit", required=False)
@warehouse_option
@click.option("--full", "is_full", is_flag=True, help="Show every section, not only findings and the worst tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def show(audit: str | None, warehouse: Warehouse | None, is_full: bool, as_json: bool) -> None:
    """Show AUDIT: a checkpoint's newest result of each measure and question, by its name; or one audit, by its id or
    first digits; by default the newest audit.
    """
    audits = read_state(warehouse_path(warehouse), audit or LATEST)
    if as_json:
        read = [
            facts if counted is None else {**facts, "counted_measures": sorted(counted)} for facts, counted in audits
        ]
        click.echo(json.dumps(read if len(read) > 1 else read[0], indent=1, default=str, ensure_ascii=False))
    else:
        print_page(state_page(audits), is_full=is_full)
