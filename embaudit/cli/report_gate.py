"""A gate's verdict in the terminal: what tripped first, then what is only missing, then what passed."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from embaudit.cli.shown import as_text
from embaudit.gate import GateVerdict

PASSED_SHOWN = 40
COLOURS = {"passed": "green", "tripped": "red", "missing": "yellow"}


def print_gate(verdict: GateVerdict) -> None:
    """Print the table of findings and the verdict in one sentence."""
    console = Console(width=None if Console().is_terminal else 140)
    against = f" against {verdict.baseline_audit_id}" if verdict.baseline_audit_id else ""
    table = Table(
        title=as_text(f"Gate {verdict.policy} on audit {verdict.audit_id} of {verdict.source}{against}"),
        title_justify="left",
    )
    for name in ("rule", "figure", "value", "allowed", "baseline", "outcome", "reason"):
        table.add_column(name, justify="right" if name == "baseline" else "left", overflow="fold")
    passed = [finding for finding in verdict.findings if finding.outcome == "passed"]
    for finding in (*verdict.tripped, *verdict.let_off, *passed[:PASSED_SHOWN]):
        outcome = finding.outcome if finding.trips or finding.outcome == "passed" else "missing, warned"
        colour = "red" if finding.trips else COLOURS[finding.outcome]
        table.add_row(
            as_text(finding.rule),
            as_text(finding.figure),
            as_text(finding.shown_value),
            as_text(finding.allowed),
            as_text(finding.shown_baseline),
            f"[{colour}]{outcome}[/{colour}]",
            as_text(finding.reason),
        )
    console.print(table)
    if len(passed) > PASSED_SHOWN:
        console.print(f"{len(passed) - PASSED_SHOWN} more passed; all: --json", highlight=False)
    console.print(as_text(verdict.headline), highlight=False)
