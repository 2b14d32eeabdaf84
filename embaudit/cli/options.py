"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

warehouse_option = click.option(
    "--warehouse",
    type=click.Path(dir_okay=False, path_type=Path),
    help="DuckDB file.  [default: EMBAUDIT_WAREHOUSE, or warehouse.duckdb in EMBAUDIT_HOME (.embaudit)]",
)


def warehouse_path(given: Path | None) -> Path:
    """The warehouse that a command works on."""
    from embaudit.settings import Settings

    return given.expanduser().absolute() if given else Settings().warehouse_path
