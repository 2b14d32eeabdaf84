"""``embaudit switch``: what becomes of the index that the old revision built?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import MATERIAL_LEAVES, EndpointOptions, asks_functions, say, time_left
from embaudit.cli.options import CHECKPOINT_FIELDS, material_options, request_options
from embaudit.cli.printed import OutputOptions, ends_in_page

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest


@click.command()
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name != "seed"),
    argument="OLD",
    dtype="Precision of both; auto is float32.",
)
@click.argument("new")
@material_options
@click.option("--corpus", metavar="SOURCE", help="Texts of the index: a file, a folder, or hub:owner/name.")
@click.option(
    "--queries",
    metavar="FILE",
    help="Queries for --corpus, without judgements. By default, its texts ask for their neighbours.",
)
@click.option(
    "--golden",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Golden queries that should find texts of --corpus: which of them are lost or won, by name.",
)
@click.option(
    "--threshold",
    "thresholds",
    type=float,
    multiple=True,
    metavar="NUMBER",
    help="A cut-off that is in use with OLD. By default, one is chosen. Repeatable.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Rows of the index, for the cost of encoding it again.",
)
@click.option(
    "--texts",
    type=click.IntRange(min=20),
    default=2_000,
    show_default=True,
    metavar="N",
    help="Documents, and scored pairs, that are read at most.",
)
@click.option(
    "--holds",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.95,
    show_default=True,
    metavar="SHARE",
    help="What a bridge must keep of what NEW finds.",
)
@asks_functions(in_roles=True, keeps=True)
@ends_in_page
def switch(
    request: AuditRequest,
    new: str,
    pairs: tuple[Path, ...],
    data: tuple[Path, ...],
    corpus: str | None,
    queries: str | None,
    golden: Path | None,
    thresholds: tuple[float, ...],
    rows: int,
    texts: int,
    holds: float,
    asked: EndpointOptions,
    shown: OutputOptions,
) -> int:
    """OLD built an index: what becomes of it, and of a cut-off, if NEW takes over?

    Either may be a checkpoint, the address of an endpoint, or a Python object (python:MODULE:NAME). Both encode the
    same texts: yours, or the embedded sample.
    Exit code 0 if the index may stay as it is, 1 if a new threshold, a bridge or a new index is needed, 2 if that could
    not be told.
    """
    from embaudit.api.switch import run, switch_material

    both = request.checkpoint, new
    asked.say_that_texts_leave(both, *MATERIAL_LEAVES)
    report = run(
        request,
        new,
        switch_material(pairs, data, corpus, queries, texts, golden),
        asked=asked.of(*both),
        thresholds=thresholds,
        rows=rows,
        holds=holds,
        progress=lambda what: click.echo(f"Comparing {what} …", err=True),
        say=say,
        told=time_left(),
    )
    return shown.show(report)
