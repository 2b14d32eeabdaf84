"""``embaudit export``: write a read-only copy of the warehouse that dashboards can keep open."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.system.address import Warehouse
from embaudit.system.settings import Settings
from embaudit.warehouse.export import Form
from embaudit.warehouse.export import export as export_warehouse


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
