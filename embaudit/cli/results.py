"""``embaudit show``: show one audit's summary.

``embaudit report``: write an audit as one HTML page.

``embaudit index``: write one HTML page about all audits of a warehouse.

``embaudit list``: list the measures, or the checkpoints or audits in the warehouse.

``embaudit compare``: compare checkpoints by their audits, and answers with those before.

``embaudit query``: query the warehouse, by name or in SQL.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from embaudit.cli.options import format_option, warehouse_option, warehouse_path
from embaudit.measures import MEASURES
from embaudit.pages.compare import as_json, comparison_page
from embaudit.pages.compare_answers import answers_page, compare_answers
from embaudit.pages.compare_answers import as_json as answers_json
from embaudit.pages.html import render
from embaudit.pages.sides import read_sides
from embaudit.pages.text import print_page
from embaudit.pages.write import read_state, state_page, write_file, write_index, write_page
from embaudit.system.settings import Settings, Warehouse
from embaudit.warehouse.named import LATEST
from embaudit.warehouse.query import QueryResult, named_queries, run_query
from embaudit.words.errors import UsageError
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
