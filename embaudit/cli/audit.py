"""``embaudit audit``: audit a checkpoint."""

from __future__ import annotations

import time
from shlex import quote
from typing import TYPE_CHECKING

import click

from embaudit.api.run import refuse_early, run_audit
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.shown import as_text, visible
from embaudit.system.processors import peak_memory
from embaudit_flows.server.settings import set_defaults

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest
    from embaudit_flows.audit import AuditOutcome


@click.command()
@request_options(
    *("profile", "measures", "measure_settings", "corpora", "pairs", "draw", "warehouse"),
    *("policy", "gate", "notify", "query_prompt", "document_prompt", *CHECKPOINT_FIELDS),
)
@click.option(
    "--backbone",
    metavar="CHECKPOINT",
    help="Also audit the backbone and store the differences; 'card' takes the one named in the model card or config.",
)
@click.option("--full", "is_full", is_flag=True, help="Print every section, not only findings and the worst tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines, and a line per step where there is no terminal.")
def audit(request: AuditRequest, backbone: str | None, is_full: bool, as_json: bool, logs: bool) -> None:
    """Audit CHECKPOINT: packaged:NAME, a local folder, or owner/name@revision on the hub.

    Running the same command again continues where it stopped and recomputes nothing.
    """
    began = time.monotonic()
    refuse_early(request, backbone)
    set_defaults(show_logs=logs)

    from rich.console import Console

    from embaudit.cli.display import TerminalDisplay
    from embaudit.steps.progress import shown_on
    from embaudit.words.errors import ProblemFound

    console = Console(stderr=True)
    asked = f"Auditing [bold]{as_text(request.checkpoint)}[/bold], profile {as_text(request.profile)} …"
    console.print(asked, highlight=False)
    found: ProblemFound | None = None
    with TerminalDisplay(console, show_steps=logs) as display, shown_on(display):
        try:
            outcome, both = run_audit(request, backbone)
        except ProblemFound as error:
            # The audit is done and published: show it before exiting with its code.
            found, outcome, both = error, error.audit, None
    if as_json:
        click.echo((both or outcome).model_dump_json(indent=1))
    else:
        print_outcome(outcome, request.warehouse, is_full=is_full, seconds=time.monotonic() - began)
    if found is not None:
        raise found


def print_outcome(outcome: AuditOutcome, warehouse: str | None, *, is_full: bool, seconds: float) -> None:
    """Print the audit's page, what it read and what the command cost, a backbone's audit included."""
    from embaudit.pages.terminal import print_page

    print_page(outcome.page(), is_full=is_full)
    print_reading(outcome)
    print_cost(seconds)
    if outcome.verdict.get("kind", "not checked") != "not checked":
        # Its page begins with it, which may be screens above.
        click.echo(visible(f"Verdict: {outcome.verdict['line']}"))
    click.echo(visible(f"Results: {outcome.warehouse}"))
    if outcome.report:
        click.echo(visible(f"Report:  {outcome.report}"))
    if outcome.passport:
        click.echo(visible(f"Passport: {outcome.passport}"))
    where = "" if warehouse is None else f" --warehouse {quote(warehouse)}"
    click.echo(visible(f"Query:   embaudit query worst-tokens{where}   or   embaudit query 'SELECT …'{where}"))
    if outcome.gate is not None:
        click.echo(visible(outcome.gate.headline))


def print_reading(outcome: AuditOutcome) -> None:
    """Print what was read and dropped of each corpus, and the warnings."""
    for name, origin in outcome.corpora.items():
        click.echo(visible(f"Corpus {name}, {origin}"))
    for warning in outcome.warnings:
        click.echo(visible(f"Warning: {warning}"))


def print_cost(seconds: float) -> None:
    """Print wall time of the whole command and peak memory of this process."""
    click.echo(f"Took {seconds:.0f} s, peak memory {peak_memory() / 1024**3:.1f} GiB.")
