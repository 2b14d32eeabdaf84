"""``embaudit passport``: write the file by which a checkpoint can be told from any other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.shown import visible

if TYPE_CHECKING:
    from embaudit.request import AuditRequest


@click.command()
@request_options(*(name for name in CHECKPOINT_FIELDS if name not in ("dtype", "seed")))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="passport.json",
    show_default=True,
    help="Where to write it; an earlier passport of the same checkpoint is replaced.",
)
def passport(request: AuditRequest, out: Path) -> None:
    """Write CHECKPOINT's passport: more than 50 texts that servers get wrong, with their vectors and tolerances.

    Keep it beside an index or in a server's image; embaudit verify, or a script without embaudit, says whether what is
    served is still the same function.
    """
    from embaudit.api.passport import make

    made = make(request, out)
    reading = made.reading
    click.echo(
        visible(
            f"{out}: {len(made.canaries)} texts of {len(made.kinds)} kinds, {reading.dimension} dimensions"
            f"{', normalised' if reading.is_normalised else ''}, {out.stat().st_size / 1000:.0f} kB. "
            f"Next: embaudit verify {out} --with http://localhost:8080"
        )
    )
