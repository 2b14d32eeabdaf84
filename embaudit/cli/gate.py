"""``embaudit gate``: check a published audit, or answers, against a policy, for CI: exit code 1 if it fails.

``embaudit accept``: accept by name what is open of a checkpoint, a watched source or an index.

``embaudit filter``: list the severe tokens of an audit for an ingestion pipeline.
"""

from __future__ import annotations

import json
import sys
from getpass import getuser
from pathlib import Path

import click

from embaudit.cli.options import CI, warehouse_option, warehouse_path, write_for_ci
from embaudit.declared.document import count
from embaudit.pages.general import gate_section, headline
from embaudit.pages.text import console, print_part, print_section
from embaudit.remedies.screening import SEVERITIES, Severity
from embaudit.system.files import replace_atomically
from embaudit.system.settings import Settings, Warehouse
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.gate import load_policy, run_gate
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import find_result
from embaudit.warehouse.query import severe_tokens
from embaudit.watch.open_items import accept as accept_items
from embaudit.words.errors import EXIT_TRIPPED, StorageError, UsageError
from embaudit.words.sentences import visible


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


@click.command()
@click.argument("checkpoint")
@click.argument("items", nargs=-1, metavar="[RULE|FIGURE]...")
@click.option("--reason", required=True, metavar="TEXT", help="Why; shown with what was accepted.")
@click.option("--by", metavar="NAME", help="Who accepts it.  [default: the user of this process]")
@warehouse_option
def accept(checkpoint: str, items: tuple[str, ...], reason: str, by: str | None, warehouse: Warehouse | None) -> None:
    """Accept what is open for CHECKPOINT: a verdict not to serve it, rules that it trips, figures that got worse.

    CHECKPOINT is a checkpoint's name, a watched source or index, or an audit's id. Every watch reports what is open
    until it is accepted, or the checkpoint, the policy or the rows of the index change. Without RULE or FIGURE, all of
    it is accepted. A later revision, and rows that come later, are judged anew.
    """
    accepted = accept_items(
        warehouse_path(warehouse),
        checkpoint,
        items,
        by=by or _user(),
        reason=reason,
        wait_seconds=Settings().lock_wait_seconds,
    )
    for item in accepted:
        found_by = "check" if item.what == "index" else "audit"
        click.echo(visible(f"Accepted, {found_by} {item.audit_id}: {item}"))


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError, ImportError) as error:
        raise UsageError("The user of this process has no name.", next_step="Say who accepts it: --by NAME") from error


@click.command("filter")
@click.argument("audit", metavar="AUDIT|CHECKPOINT")
@click.option(
    "--severity", type=click.Choice(SEVERITIES), default="moderate", show_default=True, help="Minimum severity."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Output file.  [default: stdout]"
)
@warehouse_option
def filter_(audit: str, severity: Severity, out: Path | None, warehouse: Warehouse | None) -> None:
    """Print the severe tokens of an audit as JSON, worst first, for use in an ingestion pipeline.

    AUDIT is an id, its first digits, or latest; CHECKPOINT stands for its newest search for sticky
    tokens.
    """
    place = warehouse_path(warehouse)
    with open_reader(place) as connection:
        require_newest(connection, place)
        listed = severe_tokens(connection, find_result(connection, audit, "sticky"), severity)
    if out is None:
        click.echo(listed.as_json(is_ascii=True))
        return
    try:
        with replace_atomically(out) as partial:
            partial.write_text(listed.as_json(is_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Cannot write {out}: {error}.", next_step="Free some space, or choose another file."
        ) from error
    click.echo(visible(f"{out}: {count(len(listed.tokens), 'token')} of {listed.checkpoint}, audit {listed.audit_id}."))
