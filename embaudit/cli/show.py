"""``embaudit show``: show one audit's summary."""

from __future__ import annotations

import json

import click

from embaudit.address import Warehouse
from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.page.audit import audit_page
from embaudit.page.facts import read_audit
from embaudit.page.terminal import print_page


@click.command()
@click.argument("audit", required=False)
@warehouse_option
@click.option("--full", "is_full", is_flag=True, help="Show every section, not only findings and the worst tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def show(audit: str | None, warehouse: Warehouse | None, is_full: bool, as_json: bool) -> None:
    """Show AUDIT (an id or its first digits), or the newest one."""
    facts = read_audit(warehouse_path(warehouse), audit)
    if as_json:
        click.echo(json.dumps(facts, indent=1, default=str, ensure_ascii=False))
    else:
        print_page(audit_page(facts), is_full=is_full)
