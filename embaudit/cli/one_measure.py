"""Commands for a single measure: run and publish an audit of it, and print only its section."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from embaudit.api.run import refuse_early, run_audit
from embaudit.cli.audit import print_cost, print_reading
from embaudit.cli.shown import visible
from embaudit.words.errors import UsageError
from embaudit_flows.server.settings import set_defaults

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest


TASKS = ("longdocs", "retrieval", "sts")


def require_tasks(sources: Collection[str]) -> None:
    """Raise a UsageError for a corpus without a task."""
    unknown = [name for name in sources if name not in TASKS]
    if unknown:
        raise UsageError(
            f"There is no task for a corpus {unknown[0]!r}.", next_step=f"Choose from: {', '.join(TASKS)}."
        )


def audit_one_measure(request: AuditRequest, *measures: str, as_json: bool, logs: bool) -> None:
    """Run the audit; print its findings and the measures' sections, or everything as JSON."""
    began = time.monotonic()
    refuse_early(request)
    set_defaults(show_logs=logs)

    from rich.console import Console

    from embaudit.cli.display import TerminalDisplay
    from embaudit.measures import MEASURES
    from embaudit.pages.audit import audit_page
    from embaudit.pages.facts import read_audit
    from embaudit.pages.terminal import print_page
    from embaudit.steps.progress import shown_on

    with TerminalDisplay(Console(stderr=True), show_steps=logs) as display, shown_on(display):
        outcome, _ = run_audit(request, None)
    if as_json:
        click.echo(outcome.model_dump_json(indent=1))
        return
    facts = read_audit(outcome.warehouse, outcome.audit_id)
    sections = [MEASURES[name].parts().page.section(facts) for name in measures]
    print_page(replace(audit_page(facts), sections=[section for section in sections if section]))
    print_reading(outcome)
    print_cost(time.monotonic() - began)
    click.echo(visible(f"Results: {outcome.warehouse}"))
