"""``embaudit query``: query the warehouse, by name or in SQL."""

from __future__ import annotations

import csv
import json
import math
import sys
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from embaudit.cli.options import format_option, warehouse_option, warehouse_path
from embaudit.system.settings import Warehouse
from embaudit.warehouse.query import QueryResult, named_queries, run_query
from embaudit.words.sentences import visible


@click.command()
@click.argument("name_or_sql", required=False)
@warehouse_option
@format_option
def query(name_or_sql: str | None, warehouse: Warehouse | None, form: str) -> None:
    """Run a named query or one SQL statement, read-only. Without an argument, list the named queries."""
    if name_or_sql is None:
        print_result(
            QueryResult(["name", "question"], [(one.name, one.question) for one in named_queries().values()]),
            form,
        )
        return
    print_result(run_query(warehouse_path(warehouse), name_or_sql), form)


def print_result(result: QueryResult, form: str) -> None:
    """Print rows as a table, CSV or JSON."""
    if form == "json":
        names = _distinct(result.columns)
        rows = [dict(zip(names, (_json_value(value) for value in row), strict=True)) for row in result.rows]
        click.echo(json.dumps(rows, indent=1, default=str, ensure_ascii=False, allow_nan=False))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
    else:
        _print_table(result)


# Characters that a column needs to say anything: in a narrower terminal, rows stand one below the other.
NARROWEST = 8


def _print_table(result: QueryResult) -> None:
    console = Console()
    if console.is_terminal and len(result.columns) * NARROWEST > console.width:
        for row in result.rows:
            console.rule(style="dim")
            for name, value in zip(result.columns, row, strict=True):
                console.print(Text.assemble((f"{visible(str(name))}: ", "bold"), _cell(value)))
        click.echo(f"{len(result.rows)} row{'' if len(result.rows) == 1 else 's'}")
        return
    # Names come from the SQL: as Text, rich does not read brackets as markup.
    table = Table(*(Column(Text(visible(str(name)))) for name in result.columns))
    for row in result.rows:
        table.add_row(*(_cell(value) for value in row))
    # Never truncate to a guessed width in a pipe.
    console = console if console.is_terminal else Console(width=10_000)
    console.print(table, soft_wrap=not console.is_terminal, crop=console.is_terminal)
    click.echo(f"{len(result.rows)} row{'' if len(result.rows) == 1 else 's'}")


def _distinct(columns: list[str]) -> list[str]:
    """Column names as JSON keys: a join's second ``text`` becomes ``text_2`` instead of replacing the first."""
    names: list[str] = []
    for column in columns:
        name, count = column, 1
        while name in names:
            count += 1
            name = f"{column}_{count}"
        names.append(name)
    return names


def _json_value(value: Any) -> Any:
    """A cell as JSON: NaN and infinity as null, decimals as numbers, timestamps in ISO 8601."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    return value


def _cell(value: Any) -> Any:
    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    return Text(visible(str(value)))
