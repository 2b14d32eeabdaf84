"""``embaudit audit``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from embaudit.cli.options import checkpoint_options, pairs_option, parse_pairs, warehouse_option

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
    warehouse: Path | None,
    limit_tokens: int | None,
    backbone: str | None,
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
    refuse_early(checkpoint, profile, measures, backbone)
    prepare_prefect(show_logs=logs)

    from rich.console import Console

    from embaudit.cli.display import TerminalDisplay
    from embaudit_tasks.progress import shown_on

    console = Console(stderr=True)
    console.print(f"Auditing [bold]{checkpoint}[/bold], profile {profile} …", highlight=False)
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
    }
    with TerminalDisplay(console) as display, shown_on(display):
        outcome, both = run_audit(checkpoint, backbone, parameters)
    if as_json:
        click.echo((both or outcome).model_dump_json(indent=1))
        return
    from embaudit.cli.report import print_audit

    print_audit(Path(outcome.warehouse), outcome.audit_id)
    if both:
        from embaudit.cli.report_backbone import print_backbone

        print_backbone(Path(outcome.warehouse), outcome.audit_id, both.backbone.audit_id)
    for name, origin in outcome.corpora.items():
        click.echo(f"Corpus {name}, {origin}")
    for warning in outcome.warnings:
        click.echo(f"Warning: {warning}")
    print_cost(outcome.seconds)
    click.echo(f"Results: {outcome.warehouse}")
    where = "" if warehouse is None else f" --warehouse {warehouse}"
    click.echo(f"Ask it:  embaudit query worst-tokens{where}   or   embaudit query 'SELECT …'{where}")


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

    sources: dict[str, str] = {}
    for given in corpora:
        name, separator, source = given.partition("=")
        if not (separator and name and source):
            raise UsageError(f"--corpus {given} is not NAME=SOURCE.", next_step="For example: --corpus sts=pairs.csv")
        if name in sources:
            raise UsageError(f"--corpus {name} is given twice.")
        sources[name] = source
    return sources


def split_names(names: str | None) -> list[str] | None:
    """Comma-separated names; None where none were given."""
    return [name.strip() for name in names.split(",") if name.strip()] if names is not None else None


def refuse_early(checkpoint: str, profile: str, measures: str | None, backbone: str | None = None) -> None:
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
    for name in split_names(measures) or []:
        if name not in MEASURES:
            raise UsageError(f"No measure is called {name!r}.", next_step=f"There are: {', '.join(MEASURES)}.")


def print_cost(seconds: float) -> None:
    """Wall time and peak memory of this process."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    mebibytes = peak / (1024**2 if sys.platform == "darwin" else 1024)
    click.echo(f"Took {seconds:.0f} s, peak memory {mebibytes / 1024:.1f} GiB.")
