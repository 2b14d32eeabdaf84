"""An audit on a page of terminal: what ``audit`` prints at its end and ``show`` prints any time."""

from __future__ import annotations

from rich.console import Console

from embaudit.address import Warehouse
from embaudit.cli.report_layers import print_layers
from embaudit.cli.report_length import print_length
from embaudit.cli.report_published import print_published
from embaudit.cli.report_socm import print_socm
from embaudit.cli.report_sticky import print_sticky, print_sticky_beside
from embaudit.cli.report_tempscale import print_tempscale
from embaudit.cli.shown import as_text
from embaudit.report.facts import read_audit


def print_audit(warehouse: Warehouse, audit_id: str | None) -> None:
    """Print an audit's summary.

    Args:
        audit_id: or its first digits; None for the newest.

    Raises:
        UsageError: if there is no such audit.
    """
    facts = read_audit(warehouse, audit_id)
    console = Console(width=None if Console().is_terminal else 120)
    console.print()
    console.rule(
        f"[bold]{as_text(facts['source'])}[/bold]  audit {facts['audit_id']}, profile {as_text(facts['profile'])}"
    )
    if facts["status"] != "published":
        reason = as_text(facts["reason"])
        console.print(
            f"This audit is [bold]{facts['status']}[/bold], nothing of it is published: {reason}", highlight=False
        )
        return
    if facts["sticky"]:
        print_sticky(console, facts)
        print_sticky_beside(console, facts)
    if facts["socm"]:
        print_socm(console, facts)
    if facts["layers"]:
        print_layers(console, facts["layers"])
    if facts["length"]:
        print_length(console, facts)
    if facts["temperatures"]:
        print_tempscale(console, facts["temperatures"], facts["temperature_arms"])
    print_published(console, facts["published"])
    samples = [corpus["name"] for corpus in facts["corpora"] if corpus["source"] == "sample"]
    if samples:
        console.print(
            f"[dim]On the embedded sample ({', '.join(samples)}): enough to see that it works; for conclusions give "
            "real corpora, e.g. --corpus sts=FILE.[/dim]"
        )
