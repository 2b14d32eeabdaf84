"""``embaudit list``: list the measures, or the checkpoints or audits in the warehouse."""

from __future__ import annotations

import click

from embaudit.cli.options import format_option, warehouse_option, warehouse_path
from embaudit.cli.query import print_result
from embaudit.measures import MEASURES
from embaudit.system.address import Warehouse
from embaudit.warehouse.query import QueryResult, run_query


@click.command("list")
@click.argument("what", type=click.Choice(["checkpoints", "audits", "measures"]))
@warehouse_option
@format_option
def list_(what: str, warehouse: Warehouse | None, form: str) -> None:
    """List the checkpoints or audits in the warehouse, newest first, or the available measures."""
    if what == "measures":
        rows = [(one.name, one.question, "" if one.is_default else "--measures") for one in MEASURES.values()]
        print_result(QueryResult(["measure", "question", "only with"], rows), form)
    else:
        print_result(run_query(warehouse_path(warehouse), what), form)
