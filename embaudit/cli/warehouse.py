"""``embaudit export``: write a read-only copy of the warehouse that dashboards can keep open.

``embaudit prune``: delete detail rows and staged files that are no longer needed, and reclaim the space.

``embaudit upgrade``: upgrade an older warehouse to the current schema.

``embaudit ingest``: load a corpus into the warehouse.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click
from rich.console import Console
from rich.table import Table

from embaudit.cli.options import as_text, warehouse_option, warehouse_path
from embaudit.cli.server import prepare_prefect
from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.load import load_corpus
from embaudit.steps.staging.files import delete_leftovers, find_leftovers
from embaudit.system.settings import Settings, Warehouse
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.export import Form
from embaudit.warehouse.export import export as export_warehouse
from embaudit.warehouse.prune import Keep, vacuum
from embaudit.warehouse.prune import prune as prune_rows
from embaudit.words.errors import UsageError
from embaudit.words.sentences import visible


@click.command()
@click.argument("destination", type=click.Path(path_type=Path), metavar="FILE_OR_FOLDER")
@warehouse_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["duckdb", "parquet"]),
    help="A DuckDB file, or a folder of Parquet files.  [default: by the file name]",
)
@click.option("--tables", metavar="NAMES", help="Comma-separated tables to copy.  [default: all]")
@click.option("--no-bulk", is_flag=True, help="Leave out the bulk tables (socm_pair: millions of rows per audit).")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Versions to keep in a folder, for programs that are still reading them.",
)
def export(
    destination: Path, warehouse: Warehouse | None, form: str | None, tables: str | None, no_bulk: bool, keep: int
) -> None:
    """Copy a consistent snapshot of the warehouse to FILE.duckdb or FOLDER/current.

    The copy is replaced atomically: readers see the old or the new one and block nobody.
    """
    names = [name.strip() for name in tables.split(",") if name.strip()] if tables is not None else None
    made = export_warehouse(
        warehouse_path(warehouse),
        destination,
        Settings().lock_wait_seconds,
        form=cast("Form | None", form),
        tables=names,
        with_bulk=not no_bulk,
        keep=keep,
    )
    click.echo(
        visible(
            f"{made.path}: {sum(made.rows.values()):,} rows of {len(made.rows)} tables, {made.bytes / 1024**2:.1f} MiB."
        )
    )


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


@click.command()
@warehouse_option
def upgrade(warehouse: Warehouse | None) -> None:
    """Upgrade the warehouse to the current schema, keeping every row. Audits also do this when they publish."""
    place = warehouse_path(warehouse)
    wait = Settings().lock_wait_seconds
    # Read first: opening it for writing would create a missing warehouse.
    with open_reader(place, wait):
        pass
    with open_writer(place, wait) as connection:
        row = connection.execute("SELECT max(version) FROM schema_migration").fetchone()
    click.echo(visible(f"{place} has schema {row[0] if row else 0}, the newest this embaudit knows."))


@click.command()
@click.argument("corpus")
@click.argument("source")
@warehouse_option
@click.option("--logs", is_flag=True, help="Show Prefect's log lines.")
def ingest(corpus: str, source: str, warehouse: Warehouse | None, logs: bool) -> None:
    """Ingest CORPUS from SOURCE: sample, hub, hub:owner/name[config]/split@revision:column, or a local file or folder.

    CORPUS is wikipedia, msmarco, msmarco-queries, msmarco-hard-negatives, sts or longdocs. Ingesting the same rows
    again changes nothing.
    """
    if corpus not in CORPORA:
        load_corpus(corpus, source)  # raises with the closest name
    prepare_prefect(show_logs=logs)
    from embaudit_flows.ingest import ingest as ingest_flow
    from embaudit_flows.server.temporary import await_server

    await_server()
    result = ingest_flow(name=corpus, source=source, warehouse=str(warehouse) if warehouse else None)
    click.echo(f"Corpus {result.name} ({result.corpus_id}): {result.report}")
