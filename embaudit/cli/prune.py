"""``embaudit prune``: delete detail rows and staged files that are no longer needed, and reclaim the space."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import as_text, visible
from embaudit.steps.staging.files import delete_leftovers, find_leftovers
from embaudit.system.address import Warehouse
from embaudit.system.settings import Settings
from embaudit.warehouse.prune import Keep
from embaudit.warehouse.prune import prune as prune_rows
from embaudit.warehouse.vacuum import vacuum
from embaudit.words.errors import UsageError

MEBIBYTE = 1024**2


@click.command()
@warehouse_option
@click.option(
    "--keep-days", type=click.IntRange(min=0), metavar="N", help="Keep the rows of audits of the last N days."
)
@click.option(
    "--keep-audits",
    type=click.IntRange(min=0),
    metavar="N",
    help="Keep the rows of the newest N audits of each checkpoint, and of its newest results unless N is 0.",
)
@click.option(
    "--staged-days",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also delete staged files not used for N days; they are recomputed if needed again.",
)
@click.option("--no-vacuum", is_flag=True, help="Do not reclaim the space now.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
def prune(
    warehouse: Warehouse | None,
    keep_days: int | None,
    keep_audits: int | None,
    staged_days: int | None,
    no_vacuum: bool,
    dry_run: bool,
) -> None:
    """Delete the per-token, per-text and per-pair rows of audits kept by neither --keep-days nor --keep-audits.

    Summaries, verdicts, corpora and the log are kept. Deletions are recorded in the table pruning; running the same
    audit command again restores an audit's rows.
    """
    place, settings = warehouse_path(warehouse), Settings()
    keep = Keep(keep_days, keep_audits)
    has_rule = keep_days is not None or keep_audits is not None
    if not has_rule and staged_days is None:
        raise UsageError(
            "Nothing to prune was specified.",
            next_step="For example: --keep-days 90, --keep-audits 2, --staged-days 30.",
        )
    pruned = prune_rows(place, settings.lock_wait_seconds, keep, dry_run=dry_run) if has_rule else []
    _print_rows([(one.audit_id, one.table, one.rows) for one in pruned])
    verb = "would be deleted" if dry_run else "deleted"
    click.echo(f"{sum(one.rows for one in pruned):,} rows of {len({one.audit_id for one in pruned}):,} audits {verb}.")
    if staged_days is not None:
        file = place if isinstance(place, Path) else None
        left = find_leftovers(str(settings.staging), file, staged_days)
        if not dry_run:
            delete_leftovers(left)
        click.echo(f"{left.files:,} staged files, {left.bytes / MEBIBYTE:,.1f} MiB, {verb}.")
    if not (dry_run or no_vacuum):
        done = vacuum(place, settings.lock_wait_seconds)
        click.echo(
            visible(
                f"{place}: {done.before / MEBIBYTE:,.1f} MiB before, {done.after / MEBIBYTE:,.1f} MiB after "
                f"({done.done})."
            )
        )


def _print_rows(rows: list[tuple[str, str, int]]) -> None:
    if not rows:
        return
    table = Table("audit", "table", "rows")
    for audit_id, name, count in rows:
        table.add_row(as_text(audit_id), name, f"{count:,}")
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(table)
