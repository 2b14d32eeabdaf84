"""``embaudit audit``: the main job."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from embaudit.address import Warehouse, warehouse_at
from embaudit.cli.options import checkpoint_options, pairs_option, parse_pairs, warehouse_option
from embaudit.cli.shown import as_text, visible
from embaudit.peak_memory import peak_memory

if TYPE_CHECKING:
    from embaudit_flows.audit import AuditOutcome
    from embaudit_flows.backbone import BackboneOutcome


@click.command()
@click.argument("checkpoint")
@click.option(
    "--profile",
    default="quick",
    show_default=True,
    metavar="NAME",
    help="quick, standard, paper, or a TOML file.",
)
@click.option(
    "--measures",
    metavar="NAMES",
    help="Comma-separated: sticky, socm, layers, length (the default), tempscale.",
)
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="NAME=SOURCE",
    help="Where a corpus comes from: sample, hub, hub:owner/name@revision, or a file; hard negatives also from "
    "mined:bm25:FOLDER or mined:checkpoint:FOLDER. Repeatable.",
)
@pairs_option
@click.option("--exhaustive", is_flag=True, help="Every token all draws, every candidate all points: no saving.")
@click.option("--reference", is_flag=True, help="The published code's protocol too: 120 encodes a scanned token.")
@warehouse_option
@click.option("--limit-tokens", type=click.IntRange(min=1), metavar="N", help="Scan only N tokens, drawn by the seed.")
@click.option(
    "--backbone",
    metavar="CHECKPOINT",
    help="Audit its backbone too and store the differences; 'card': the one that the model card or config names.",
)
@click.option("--policy", metavar="FILE", help="A gate's policy (TOML), applied once the audit is published.")
@click.option(
    "--gate",
    type=click.Choice(["fail", "mark"]),
    default="fail",
    show_default=True,
    help="Where the gate trips: fail with exit code 1, or only mark the run.",
)
@click.option(
    "--notify",
    metavar="BLOCK",
    help="A Prefect notification block to tell of a failure or a tripped gate, such as slack-webhook/ops.",
)
@checkpoint_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines.")
def audit(
    checkpoint: str,
    profile: str,
    measures: str | None,
    corpora: tuple[str, ...],
    pairs: tuple[str, ...],
    exhaustive: bool,
    reference: bool,
    warehouse: Warehouse | None,
    limit_tokens: int | None,
    backbone: str | None,
    policy: str | None,
    gate: str,
    notify: str | None,
    device: str,
    dtype: str,
    pooling: str | None,
    max_length: int | None,
    seed: int,
    allow_pickle: bool,
    trust_remote_code: bool,
    as_json: bool,
    logs: bool,
) -> None:
    """Audit CHECKPOINT: packaged:NAME, a local folder, or owner/name@revision on the hub.

    The same command again continues where the last one stopped, and recomputes nothing that is done.
    """
    from embaudit.cli.prefect_setup import prepare_prefect

    sources = parse_sources(corpora)
    given_pairs = parse_pairs(pairs)
    refuse_early(checkpoint, profile, measures, backbone, policy)
    prepare_prefect(show_logs=logs)

    from rich.console import Console

    from embaudit.cli.display import TerminalDisplay
    from embaudit.gate import GateTripped
    from embaudit_tasks.progress import shown_on

    console = Console(stderr=True)
    console.print(f"Auditing [bold]{as_text(checkpoint)}[/bold], profile {as_text(profile)} …", highlight=False)
    parameters = {
        "profile": profile,
        "measures": split_names(measures),
        "corpora": sources,
        "pairs": given_pairs,
        "exhaustive": exhaustive,
        "reference": reference,
        "warehouse": str(warehouse) if warehouse else None,
        "limit_tokens": limit_tokens,
        "device": device,
        "dtype": dtype,
        "pooling": pooling,
        "max_length": max_length,
        "seed": seed,
        "allow_pickle": allow_pickle,
        "trust_remote_code": trust_remote_code,
        "policy": policy,
        "gate": gate,
        "notify": notify,
    }
    tripped: GateTripped | None = None
    with TerminalDisplay(console) as display, shown_on(display):
        try:
            outcome, both = run_audit(checkpoint, backbone, parameters)
        except GateTripped as error:
            # The audit itself is done and published: it is shown before the command ends as the gate says.
            tripped, outcome, both = error, error.audit, None
    if as_json:
        click.echo((both or outcome).model_dump_json(indent=1))
    else:
        print_outcome(outcome, both, warehouse)
    if tripped is not None:
        raise tripped


def print_outcome(outcome: AuditOutcome, both: BackboneOutcome | None, warehouse: Warehouse | None) -> None:
    """The audit's page, what its gate and its backbone make of it, what it read and what it cost."""
    from embaudit.cli.report import print_audit

    print_audit(warehouse_at(outcome.warehouse), outcome.audit_id)
    if both:
        from embaudit.cli.report_backbone import print_backbone

        print_backbone(warehouse_at(outcome.warehouse), outcome.audit_id, both.backbone.audit_id)
    for name, origin in outcome.corpora.items():
        click.echo(visible(f"Corpus {name}, {origin}"))
    if outcome.gate is not None:
        from embaudit.cli.report_gate import print_gate

        print_gate(outcome.gate)
    for warning in outcome.warnings:
        click.echo(visible(f"Warning: {warning}"))
    print_cost(outcome.seconds)
    click.echo(visible(f"Results: {outcome.warehouse}"))
    if outcome.report:
        click.echo(visible(f"Report:  {outcome.report}"))
    where = "" if warehouse is None else f" --warehouse {quote(str(warehouse))}"
    click.echo(visible(f"Ask it:  embaudit query worst-tokens{where}   or   embaudit query 'SELECT …'{where}"))


def run_audit(
    checkpoint: str, backbone: str | None, parameters: dict[str, Any]
) -> tuple[AuditOutcome, BackboneOutcome | None]:
    """Run the flow that was asked for: the audit, or the audit with its backbone's."""
    if backbone is None:
        from embaudit_flows.audit import audit as audit_flow

        return audit_flow(checkpoint=checkpoint, **parameters), None
    from embaudit_flows.backbone import audit_with_backbone

    both = audit_with_backbone(checkpoint=checkpoint, backbone=backbone, parameters=parameters)
    return both.checkpoint, both


def parse_sources(corpora: tuple[str, ...]) -> dict[str, str]:
    """NAME=SOURCE options as a mapping.

    Raises:
        UsageError: if one has no '=' or a name comes twice.
    """
    from embaudit.errors import UsageError
    from embaudit.masking import has_credentials

    sources: dict[str, str] = {}
    for given in corpora:
        name, separator, source = given.partition("=")
        if not (separator and name and source):
            raise UsageError(f"--corpus {given} is not NAME=SOURCE.", next_step="For example: --corpus sts=pairs.csv")
        if name in sources:
            raise UsageError(f"--corpus {name} is given twice.")
        if has_credentials(source):
            # Refused before a flow has it among its parameters, which Prefect keeps and shows.
            raise UsageError(
                f"--corpus {name} is an address with a password in it, and sources are shown and stored.",
                next_step="Name a file, or hub:owner/name; for a private one log in with: hf auth login",
            )
        sources[name] = source
    return sources


def split_names(names: str | None) -> list[str] | None:
    """Comma-separated names; None where none were given."""
    return [name.strip() for name in names.split(",") if name.strip()] if names is not None else None


def refuse_early(
    checkpoint: str,
    profile: str,
    measures: str | None,
    backbone: str | None = None,
    policy: str | None = None,
) -> None:
    """What is wrong with the command itself is said before a server starts or torch is imported."""
    from embaudit.checkpoint.reference import CheckpointRef, resolve
    from embaudit.errors import UsageError
    from embaudit.profile import MEASURES, load_profile

    for name in (checkpoint, backbone):
        if name is not None and name != "card":
            reference = CheckpointRef.parse(name)
            if reference.kind != "hub":
                resolve(reference)
    load_profile(profile)
    if policy is not None:
        from embaudit.gate import load_policy

        load_policy(policy)
    for name in split_names(measures) or []:
        if name not in MEASURES:
            raise UsageError(f"No measure is called {name!r}.", next_step=f"There are: {', '.join(MEASURES)}.")


def print_cost(seconds: float) -> None:
    """Wall time and peak memory of this process."""
    click.echo(f"Took {seconds:.0f} s, peak memory {peak_memory() / 1024**3:.1f} GiB.")
