"""``embaudit parity``: is a checkpoint served as it was audited?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import MATERIAL_LEAVES, EndpointOptions, asks_functions, other_options
from embaudit.cli.options import CHECKPOINT_FIELDS, material_options, request_options
from embaudit.cli.printed import OutputOptions, ends_in_page

if TYPE_CHECKING:
    from embaudit.embedders.as_stored import Stored
    from embaudit.embedders.backend import Backend
    from embaudit.questions.audit import AuditRequest


@click.command()
@request_options(*(name for name in CHECKPOINT_FIELDS if name not in ("dtype", "seed")))
@other_options
@asks_functions(in_roles=True)
@click.option(
    "--with-backend",
    type=click.Choice(("torch", "onnx", "openvino")),
    default="torch",
    show_default=True,
    help="What another checkpoint runs in: onnx by onnxruntime, openvino by sentence-transformers.",
)
@click.option(
    "--with-stored",
    type=click.Choice(("int8", "binary")),
    help="How an index stores another checkpoint's vectors. [default: as given]",
)
@click.option(
    "--with-dimensions", type=click.IntRange(min=1), metavar="N", help="Keep the first N dimensions of its vectors."
)
@material_options
@click.option("--no-explanation", is_flag=True, help="Say whether they differ, and do not search for the reason.")
@ends_in_page
def parity(
    request: AuditRequest,
    other: str,
    asked: EndpointOptions,
    with_dtype: str,
    with_backend: Backend,
    with_stored: Stored | None,
    with_dimensions: int | None,
    pairs: tuple[Path, ...],
    data: tuple[Path, ...],
    no_explanation: bool,
    shown: OutputOptions,
) -> int:
    """Do CHECKPOINT and OTHER give the same vectors, and if not, how would CHECKPOINT have to be used to do so?

    Either may be a checkpoint, the address of an endpoint, or a Python object (python:MODULE:NAME); a difference is
    explained from the side that is a checkpoint. Asks both for texts of every kind that servers get wrong, an endpoint
    also in batches, again, and in parallel. A key for the endpoint is read from EMBAUDIT_API_KEY. Exit code 0 if they
    are the same function, 1 if not, 2 if they could not be compared.
    """
    from embaudit.api.check import given_material
    from embaudit.api.parity import OtherWay, run

    both = request.checkpoint, other
    asked.say_that_texts_leave(both, *MATERIAL_LEAVES)
    report = run(
        request,
        other,
        given_material(pairs, data),
        asked=asked.of(*both),
        way=OtherWay(with_dtype, with_backend, with_stored or "as given", with_dimensions),
        with_explanation=not no_explanation,
        progress=lambda what: click.echo(f"Comparing {what} …", err=True),
    )
    return shown.show(report)
