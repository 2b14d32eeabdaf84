"""``embaudit upgrade``: bring an older warehouse to this program's schema."""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.cli.options import warehouse_option, warehouse_path


@click.command()
@warehouse_option
def upgrade(warehouse: Path | None) -> None:
    """Bring the warehouse to this program's schema; every row is kept. Audits do it too, when they publish."""
    from embaudit.errors import WarehouseError
    from embaudit.settings import Settings
    from embaudit.warehouse.connect import open_writer

    path = warehouse_path(warehouse)
    if not path.is_file():
        raise WarehouseError(f"There is no warehouse at {path}.", next_step="Name it: --warehouse PATH")
    with open_writer(path, Settings().lock_wait_seconds) as connection:
        row = connection.execute("SELECT max(version) FROM schema_migration").fetchone()
    click.echo(f"{path} has schema {row[0] if row else 0}, the newest that this embaudit knows.")
