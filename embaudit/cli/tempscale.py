"""``embaudit tempscale``: test whether a lower attention temperature helps a checkpoint."""

from __future__ import annotations

from typing import Any

import click

from embaudit.cli.one_measure import audit_one_measure, require_tasks
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import UsageError


@click.command()
@request_options(
    *("corpora", "profile", "warehouse", "query_prompt", "document_prompt", *CHECKPOINT_FIELDS),
    corpora="longdocs: labelled texts; retrieval: a BEIR or LongEmbed folder, the same on the hub "
    "(hub:owner/name/FOLDER), or QMSum's file; sts: scored pairs.  [default: all three, from the embedded samples]",
    profile="Default sizes.",
)
@click.option("--tau", "grid", metavar="T,T,…", help="Temperatures to try.  [default: 1,0.95,0.9,0.8,0.7,0.6,0.5]")
@click.option(
    "--by",
    type=click.Choice(["layer", "head"]),
    multiple=True,
    help="Also search for a τ per layer or per head, starting from the best single one. Repeatable.",
)
@click.option(
    "--to-positions",
    is_flag=True,
    help="Read documents up to the position table's end instead of the configured limit.",
)
@click.option("--texts", type=click.IntRange(min=4), help="Maximum number of labelled texts.")
@click.option("--documents", type=click.IntRange(min=2), help="Maximum number of documents, relevant ones first.")
@click.option("--queries", type=click.IntRange(min=4), help="Maximum number of queries.")
@click.option("--pairs", type=click.IntRange(min=4), help="Maximum number of scored pairs.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines, and a line per step where there is no terminal.")
def tempscale(
    request: AuditRequest,
    grid: str | None,
    by: tuple[str, ...],
    to_positions: bool,
    as_json: bool,
    logs: bool,
    **sizes: int | None,
) -> None:
    """Test whether a lower attention temperature helps CHECKPOINT, by task and by length.

    τ is chosen on one half of the texts and evaluated on the other; 'yes' requires an interval above 0. Averaged
    pieces, whitening and centring are evaluated on the same half for comparison. This runs and publishes an audit with
    only the measure tempscale.
    """
    changes = _changes(request.corpora, grid, by, to_positions, **sizes)
    request = request.changed(measures=["tempscale"], measure_settings={"tempscale": changes})
    audit_one_measure(request, "tempscale", as_json=as_json, logs=logs)


def _changes(
    sources: dict[str, str], grid: str | None, by: tuple[str, ...], to_positions: bool, **sizes: int | None
) -> dict[str, Any]:
    """The options as changes to the profile's settings.

    Raises:
        UsageError: if a corpus is none of the three, or the grid is not a list of temperatures.
    """
    require_tasks(sources)
    changes: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    if sources:
        changes["corpora"] = list(sources)
    if by:
        changes["by"] = list(by)
    if to_positions:
        changes["reads"] = "positions"
    if grid is not None:
        try:
            changes["grid"] = [float(one) for one in grid.split(",")]
        except ValueError as error:
            raise UsageError(f"--tau {grid} is not a list of numbers.", next_step="Write --tau 1,0.9,0.8") from error
        if any(not 0 < tau < float("inf") for tau in changes["grid"]):
            raise UsageError(
                f"--tau {grid}: temperatures divide the logits and must be greater than 0.",
                next_step="Use numbers above 0, for example between 0.5 and 1.",
            )
    return changes
