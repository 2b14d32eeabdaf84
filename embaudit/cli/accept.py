"""``embaudit accept``: accept by name what is open of a checkpoint, a watched source or an index."""

from __future__ import annotations

from getpass import getuser

import click

from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.cli.shown import visible
from embaudit.system.address import Warehouse
from embaudit.system.settings import Settings
from embaudit.watch.open_items import accept as accept_items
from embaudit.words.errors import UsageError


@click.command()
@click.argument("checkpoint")
@click.argument("items", nargs=-1, metavar="[RULE|FIGURE]...")
@click.option("--reason", required=True, metavar="TEXT", help="Why; shown with what was accepted.")
@click.option("--by", metavar="NAME", help="Who accepts it.  [default: the user of this process]")
@warehouse_option
def accept(checkpoint: str, items: tuple[str, ...], reason: str, by: str | None, warehouse: Warehouse | None) -> None:
    """Accept what is open for CHECKPOINT: a verdict not to serve it, rules that it trips, figures that got worse.

    CHECKPOINT is a checkpoint's name, a watched source or index, or an audit's id. Every watch reports what is open
    until it is accepted, or the checkpoint, the policy or the rows of the index change. Without RULE or FIGURE, all of
    it is accepted. A later revision, and rows that come later, are judged anew.
    """
    accepted = accept_items(
        warehouse_path(warehouse),
        checkpoint,
        items,
        by=by or _user(),
        reason=reason,
        wait_seconds=Settings().lock_wait_seconds,
    )
    for item in accepted:
        found_by = "check" if item.what == "index" else "audit"
        click.echo(visible(f"Accepted, {found_by} {item.audit_id}: {item}"))


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError, ImportError) as error:
        raise UsageError("The user of this process has no name.", next_step="Say who accepts it: --by NAME") from error
