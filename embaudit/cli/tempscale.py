"""``embaudit tempscale``: does a lower attention temperature help this checkpoint, on these texts?"""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from embaudit.address import Warehouse, warehouse_at
from embaudit.cli.audit import parse_sources, print_cost, refuse_early
from embaudit.cli.display import TerminalDisplay
from embaudit.cli.options import checkpoint_options, warehouse_option
from embaudit.cli.prefect_setup import prepare_prefect
from embaudit.cli.report import print_audit
from embaudit.cli.shown import visible
from embaudit.errors import UsageError

CORPORA = ("longdocs", "retrieval", "sts")


@click.command()
@click.argument("checkpoint")
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="NAME=SOURCE",
    help="longdocs: labelled texts; retrieval: a BEIR or LongEmbed folder, the same on the hub "
    "(hub:owner/name:FOLDER), or QMSum's file; sts: scored pairs. Repeatable.  [default: all three, embedded samples]",
)
@click.option("--tau", "grid", metavar="T,T,…", help="The grid.  [default: 1,0.95,0.9,0.8,0.7,0.6,0.5]")
@click.option("--to-positions", is_flag=True, help="Read documents up to the position table, not the configured limit.")
@click.option("--texts", type=click.IntRange(min=4), help="Most labelled texts.")
@click.option("--documents", type=click.IntRange(min=2), help="Most documents of the collection, relevant ones first.")
@click.option("--queries", type=click.IntRange(min=4), help="Most queries.")
@click.option("--pairs", type=click.IntRange(min=4), help="Most scored pairs.")
@click.option("--profile", default="quick", show_default=True, metavar="NAME", help="Sizes where none are given.")
@warehouse_option
@checkpoint_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines.")
def tempscale(
    checkpoint: str,
    corpora: tuple[str, ...],
    grid: str | None,
    to_positions: bool,
    texts: int | None,
    documents: int | None,
    queries: int | None,
    pairs: int | None,
    profile: str,
    warehouse: Warehouse | None,
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
    """Say whether a lower attention temperature helps CHECKPOINT, task by task and by length.

    τ is chosen on one half of the texts and reported on the other: 'yes' needs an interval above 0. Beside it, on the
    same half: pieces averaged, whitening, centring. It is the measure tempscale of an audit, published as one.
    """
    sources = parse_sources(corpora)
    changes = _changes(sources, grid, to_positions, texts=texts, documents=documents, queries=queries, pairs=pairs)
    refuse_early(checkpoint, profile, "tempscale")
    prepare_prefect(show_logs=logs)

    from embaudit_flows.audit import audit
    from embaudit_tasks.progress import shown_on

    with TerminalDisplay(Console(stderr=True)) as display, shown_on(display):
        outcome = audit(
            checkpoint=checkpoint,
            profile=profile,
            measures=["tempscale"],
            corpora=sources,
            warehouse=str(warehouse) if warehouse else None,
            device=device,
            dtype=dtype,
            pooling=pooling,
            max_length=max_length,
            seed=seed,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            temperatures=changes,
        )
    if as_json:
        click.echo(outcome.model_dump_json(indent=1))
        return
    print_audit(warehouse_at(outcome.warehouse), outcome.audit_id)
    for warning in outcome.warnings:
        click.echo(visible(f"Warning: {warning}"))
    print_cost(outcome.seconds)
    click.echo(visible(f"Results: {outcome.warehouse}"))


def _changes(sources: dict[str, str], grid: str | None, to_positions: bool, **sizes: int | None) -> dict[str, Any]:
    """What the options change of the profile's settings.

    Raises:
        UsageError: if a corpus is none of the three, or the grid is no list of temperatures.
    """
    unknown = [name for name in sources if name not in CORPORA]
    if unknown:
        raise UsageError(
            f"No corpus of the temperatures is called {unknown[0]!r}.", next_step=f"There are: {', '.join(CORPORA)}."
        )
    changes: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    if sources:
        changes["corpora"] = list(sources)
    if to_positions:
        changes["reads"] = "positions"
    if grid is not None:
        try:
            changes["grid"] = [float(one) for one in grid.split(",")]
        except ValueError as error:
            raise UsageError(f"--tau {grid} is no list of numbers.", next_step="Write --tau 1,0.9,0.8") from error
        if any(not 0 < tau < float("inf") for tau in changes["grid"]):
            raise UsageError(
                f"--tau {grid} holds a temperature that makes no attention: τ divides the logits.",
                next_step="Give numbers above 0, for example between 0.5 and 1.",
            )
    return changes
