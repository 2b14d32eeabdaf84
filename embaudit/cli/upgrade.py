"""``embaudit upgrade``: upgrade an older warehouse to the current schema."""

from __future__ import annotations

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.system.address import Warehouse
from embaudit.system.settings import Settings
from embaudit.warehouse.connect import open_reader, open_writer


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
