"""``embaudit export``: a read-only copy of the warehouse that dashboards can keep open."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from embaudit.address import Warehouse
from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.settings import Settings
from embaudit.warehouse.export import Form
from embaudit.warehouse.export import export as export_warehouse


@click.command()
@click.argument("destination", type=click.Path(path_type=Path), metavar="FILE_OR_FOLDER")
@warehouse_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["duckdb", "parquet"]),
    help="A DuckDB file, or a folder of Parquet files.  [default: by the name's ending]",
)
@click.option("--tables", metavar="NAMES", help="Comma-separated: only these.  [default: all]")
@click.option("--no-bulk", is_flag=True, help="Leave the bulk tables out (socm_pair: millions of rows an audit).")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Of a folder's versions, how many stay for those who read them.",
)
def export(
    destination: Path, warehouse: Warehouse | None, form: str | None, tables: str | None, no_bulk: bool, keep: int
) -> None:
    """Copy the warehouse, as it is at one moment, to FILE.duckdb or into FOLDER/current.

    The copy is replaced in one step: readers see the old one or the new one, and block nobody.
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
