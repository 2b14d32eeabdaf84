"""``embaudit query``: ask the warehouse, by the name of a question or in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from embaudit.cli.options import warehouse_option, warehouse_path

if TYPE_CHECKING:
    from embaudit.warehouse.query import QueryResult


@click.command()
@click.argument("name_or_sql", required=False)
@warehouse_option
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
def query(name_or_sql: str | None, warehouse: Path | None, form: str) -> None:
    """Run a named query or one SQL statement, read-only. Without an argument: the names and what they answer."""
    from embaudit.warehouse.query import QueryResult, named_queries, run_query

    if name_or_sql is None:
        print_result(
            QueryResult(["name", "question"], [(one.name, one.question) for one in named_queries().values()]),
            form,
        )
        return
    print_result(run_query(warehouse_path(warehouse), name_or_sql), form)


def print_result(result: QueryResult, form: str) -> None:
    """Rows as a table for people, as CSV or as JSON for programs."""
    if form == "json":
        import json

        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        click.echo(json.dumps(rows, indent=1, default=str, ensure_ascii=False))
    elif form == "csv":
        import csv
        import sys

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
    else:
        from rich.console import Console
        from rich.table import Table

        console = Console()
        table = Table(*(str(column) for column in result.columns), show_lines=False)
        for row in result.rows:
            table.add_row(*(_cell(value) for value in row))
        # In a pipe nothing must be cut to a guessed width.
        console = console if console.is_terminal else Console(width=10_000)
        console.print(table, soft_wrap=not console.is_terminal, crop=console.is_terminal)
        click.echo(f"{len(result.rows)} rows")


def _cell(value: Any) -> Any:
    from rich.text import Text

    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    return Text(str(value))
