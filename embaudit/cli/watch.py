"""``embaudit watch``: check a watch list once and audit what is new."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from embaudit.cli.options import as_text, warehouse_option, warehouse_path
from embaudit.cli.server import prepare_prefect
from embaudit.cli.waiting import TerminalDisplay
from embaudit.system.settings import Settings, Warehouse
from embaudit.watch.look import SourceState
from embaudit.watch.watch_list import WatchList, read_watch_list
from embaudit_flows.server.settings import set_defaults

if TYPE_CHECKING:
    from embaudit.watch.outcome import WatchOutcome


@click.command()
@click.argument("watch_list", required=False, type=click.Path(path_type=Path))
@click.option(
    "--once",
    is_flag=True,
    default=True,
    show_default=True,
    help="Check once and exit. Always on; use Prefect for schedules (docs/operate.md).",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what is new and what would be done; fetch, audit and write nothing."
)
@click.option("--again", is_flag=True, help="Audit every source's current revision even if seen before.")
@click.option(
    "--deployment",
    metavar="NAME",
    help="Run audits on workers, as runs of this deployment, such as audit/on-demand.",
)
@warehouse_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines, and a line per step where there is no terminal.")
def watch(
    watch_list: Path | None,
    once: bool,
    dry_run: bool,
    again: bool,
    deployment: str | None,
    warehouse: Warehouse | None,
    as_json: bool,
    logs: bool,
) -> None:
    """Audit what is new on WATCH_LIST (TOML), compare it with the previous revision, look at endpoints and indexes.

    Exit code 1 if something is wrong that nobody accepted, 2 if something could not be looked at.

    The default WATCH_LIST is EMBAUDIT_WATCH_LIST, or watch.toml in EMBAUDIT_HOME.
    """
    path = (watch_list or Settings().watch_list_path).expanduser().absolute()
    # Report errors in the list before starting a server.
    entries = read_watch_list(path)
    if dry_run:
        set_defaults(show_logs=logs)
        from embaudit.watch.look import preview

        print_preview(preview(entries, str(warehouse_path(warehouse)), again=again), entries, as_json)
        return
    prepare_prefect(show_logs=logs)
    from embaudit.steps.progress import shown_on
    from embaudit.watch.happening import NightProblem
    from embaudit_flows.server.temporary import await_server
    from embaudit_flows.watch import watch as watch_flow

    console = Console(stderr=True)
    console.print(f"Watching [bold]{as_text(path)}[/bold] …", highlight=False)
    parameters: dict[str, Any] = {
        "watch_list": str(path),
        "warehouse": str(warehouse) if warehouse else None,
        "again": again,
        "deployment": deployment,
    }
    await_server()
    try:
        with TerminalDisplay(console, show_steps=logs) as display, shown_on(display):
            outcome = watch_flow(**parameters)
    except NightProblem as error:
        print_outcome(error.outcome, as_json)
        raise
    print_outcome(outcome, as_json)


def print_outcome(outcome: WatchOutcome, as_json: bool) -> None:
    """Print the outcome for every source."""
    if as_json:
        click.echo(outcome.model_dump_json(indent=1))
        return
    rows = []
    for row in outcome.rows:
        compared = f"compared with {row.predecessor_audit_id}" if row.predecessor_audit_id else ""
        worse = f"worse: {'; '.join(row.worse)}" if row.worse else compared
        changes = (worse, *(change and change.rstrip(".") for change in (row.weights, row.index)))
        worse = "; ".join(part for part in changes if part)
        gate = f"gate {row.gate}" if row.gate else ""
        still = f"open: {'; '.join(row.open)}" if row.open else ""
        said = "; ".join(part for part in (worse, gate, still, row.reason) if part)
        rows.append((row.source, row.revision[:12], row.outcome, row.audit_id or "", said))
    rows += [(f"{row.asks} {row.subject}", "", row.verdict, "", row.line) for row in outcome.answers]
    _print_table(("source", "revision", "outcome", "audit", "notes"), rows)
    click.echo(f"{outcome.summary}.")
    queries = ["watched", "open-items", "regressions", "sticky-changes"]
    queries += ["answers"] if outcome.answers else []
    click.echo("Query:   " + "   or   ".join(f"embaudit query {name}" for name in queries))


def print_preview(findings: list[SourceState], entries: WatchList, as_json: bool) -> None:
    """Print what a watch would do."""
    from embaudit.questions.answered import subjects_of

    others = [
        (" ".join(subjects_of(question)).strip(), f"ask {question.asks}")
        for entry in entries.questions
        for question in entry.questions
    ]
    if as_json:
        found = [
            finding.model_dump(mode="json", exclude={"source"})
            | {"source": finding.source.name, "would": planned_action(finding)}
            for finding in findings
        ]
        found += [{"source": name, "would": would} for name, would in others]
        click.echo(json.dumps(found, indent=1, ensure_ascii=False))
        return
    rows = [
        (
            finding.source.name,
            finding.revision[:12],
            "new" if finding.is_new else "",
            planned_action(finding),
            finding.reason or "",
        )
        for finding in findings
    ]
    rows += [(name, "", "", would, "") for name, would in others]
    _print_table(("source", "revision", "", "what it would do", "notes"), rows)


def planned_action(finding: SourceState) -> str:
    """What a watch would do about a finding."""
    if finding.status in ("failed", "unreachable"):
        return "record it and try again next time"
    if finding.needs_audit:
        fetched = finding.checkpoint_id is not None
        return "audit it" if fetched else "fetch it, and audit it if its content is new"
    return "record it" if finding.is_new else "nothing"


def _print_table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    # Never truncate to a guessed width in a pipe.
    console = Console(width=None if Console().is_terminal else 10_000)
    table = Table(*columns)
    for row in rows:
        table.add_row(*(as_text(cell) for cell in row))
    console.print(table, crop=console.is_terminal)
