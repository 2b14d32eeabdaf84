"""``embaudit gate``: check a published audit, or answers, against a policy, for CI: exit code 1 if it fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.printed import CI, write_for_ci
from embaudit.pages.general import gate_section, headline
from embaudit.pages.terminal import console, print_part, print_section
from embaudit.system.address import Warehouse
from embaudit.warehouse.gate import load_policy, run_gate
from embaudit.words.errors import EXIT_TRIPPED


@click.command()
@click.argument("audit")
@click.option("--policy", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Policy (TOML).")
@click.option(
    "--baseline",
    metavar="AUDIT",
    help="Audit to measure changes against: an id, its first digits, latest, a checkpoint, or previous (same source "
    "and question).  "
    "[default: the policy's, or previous]",
)
@warehouse_option
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def gate(
    audit: str,
    policy: Path,
    baseline: str | None,
    warehouse: Warehouse | None,
    as_json: bool,
    junit: Path | None,
    sarif: Path | None,
) -> None:
    """Check AUDIT against a policy: a checkpoint's newest result of each measure and question, by its name; or one
    audit, by its id, first digits, or latest. A policy of answers takes the store, endpoint or checkpoint that was
    asked about, or an answer's id. Nothing is stored.

    Exit code 0 if it passes; 1 and a table of the rules that tripped if not.
    """
    verdict = run_gate(warehouse_path(warehouse), audit, load_policy(policy), baseline)
    if junit is not None or sarif is not None:
        from embaudit.pages.ci import checked_of_gate

        write_for_ci("gate", verdict.source, list(checked_of_gate(verdict)), junit, sarif)
    if as_json:
        said = {"outcome": verdict.outcome, "tripped": len(verdict.tripped), **verdict.model_dump(mode="json")}
        click.echo(json.dumps(said, indent=1, ensure_ascii=False))
    else:
        out = console()
        print_section(gate_section(verdict, more="--json"), out)
        print_part(headline(verdict), out)
    if verdict.outcome == "tripped":
        sys.exit(EXIT_TRIPPED)


gate.params.extend(CI)
