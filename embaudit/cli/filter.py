"""``embaudit filter``: list the severe tokens of an audit for an ingestion pipeline."""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.declared.document import count
from embaudit.remedies.screening.tokens import SEVERITIES, Severity
from embaudit.system.address import Warehouse
from embaudit.system.files import replace_atomically
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import find_result
from embaudit.warehouse.severe import severe_tokens
from embaudit.words.errors import StorageError


@click.command("filter")
@click.argument("audit", metavar="AUDIT|CHECKPOINT")
@click.option(
    "--severity", type=click.Choice(SEVERITIES), default="moderate", show_default=True, help="Minimum severity."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Output file.  [default: stdout]"
)
@warehouse_option
def filter_(audit: str, severity: Severity, out: Path | None, warehouse: Warehouse | None) -> None:
    """Print the severe tokens of an audit as JSON, worst first, for use in an ingestion pipeline.

    AUDIT is an id, its first digits, or latest; CHECKPOINT stands for its newest search for sticky
    tokens.
    """
    place = warehouse_path(warehouse)
    with open_reader(place) as connection:
        require_newest(connection, place)
        listed = severe_tokens(connection, find_result(connection, audit, "sticky"), severity)
    if out is None:
        click.echo(listed.as_json(is_ascii=True))
        return
    try:
        with replace_atomically(out) as partial:
            partial.write_text(listed.as_json(is_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Cannot write {out}: {error}.", next_step="Free some space, or choose another file."
        ) from error
    click.echo(visible(f"{out}: {count(len(listed.tokens), 'token')} of {listed.checkpoint}, audit {listed.audit_id}."))
