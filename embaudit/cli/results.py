"""``embaudit show``: show one audit's summary.

``embaudit report``: write an audit as one HTML page.

``embaudit index``: write one HTML page about all audits of a warehouse.

``embaudit list``: list the measures, or the checkpoints or audits in the warehouse.

``embaudit compare``: compare checkpoints by their audits, and answers with those before.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from embaudit.cli.options import format_option, warehouse_option, warehouse_path
from embaudit.cli.query import print_result
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
from embaudit.warehouse.query import QueryResult, run_query
from embaudit.words.errors import UsageError
from embaudit.words.sentences import visible


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
