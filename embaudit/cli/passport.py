"""``embaudit passport``: write the file by which a checkpoint can be told from any other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import EndpointOptions, asks_functions
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.shown import visible

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest

CANARIES_LEAVE = "some 60 made-up ones", "they would leave this one"


@click.command()
@request_options(*(name for name in CHECKPOINT_FIELDS if name not in ("dtype", "seed")))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="passport.json",
    show_default=True,
    help="Where to write it; an earlier passport of the same checkpoint is replaced.",
)
@asks_functions()
def passport(request: AuditRequest, out: Path, asked: EndpointOptions) -> None:
    """Write CHECKPOINT's passport: more than 50 texts that servers get wrong, with their vectors and tolerances.

    CHECKPOINT may also be the address of an endpoint or a Python object (python:MODULE:NAME), whose files nobody sees:
    its passport tells tomorrow whether it is still the same function.

    Keep it beside an index or in a server's image; embaudit verify, or a script without embaudit, says whether what is
    served is still the same function.
    """
    from embaudit.api.passport import make

    asked.say_that_texts_leave([request.checkpoint], *CANARIES_LEAVE)
    made = make(request, out, asked=asked.of(request.checkpoint)[0])
    reading = made.reading
    click.echo(
        visible(
            f"{out}: {len(made.canaries)} texts of {len(made.kinds)} kinds, {reading.dimension} dimensions"
            f"{', normalised' if reading.is_normalised else ''}, {out.stat().st_size / 1000:.0f} kB. "
            f"Next: embaudit verify {out} --with http://localhost:8080"
        )
    )
