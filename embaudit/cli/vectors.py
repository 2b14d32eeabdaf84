"""``embaudit vectors``: what stored vectors show, and whether a checkpoint built them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import EndpointOptions, asks_functions, say
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.printed import OutputOptions, ends_in_page
from embaudit.cli.stores import progress_lines, reads_rows

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest
    from embaudit.questions.vectors.report import StoredReport
    from embaudit.stores.place import ReadOptions


@click.command()
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name != "dtype"),
    argument="[CHECKPOINT]",
    seed="Random seed of the sample.",
)
@click.argument("file", required=False, metavar="STORE")
@reads_rows
@click.option(
    "--rows",
    type=click.IntRange(min=1, max=20_000),
    default=1_000,
    show_default=True,
    help="How many rows, drawn at random, are encoded again.",
)
@click.option("--also", multiple=True, metavar="CHECKPOINT", help="Another that may have built rows. Repeatable.")
@click.option("--all", "every_row", is_flag=True, help="Encode every row again.")
@click.option(
    "--table",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the rows that CHECKPOINT did not build to a .csv or .parquet file; implies --all.",
)
@click.option(
    "--whole",
    is_flag=True,
    help="Read all rows of Parquet files with more than ten million; by default, row groups drawn at random.",
)
@click.option("--no-explanation", is_flag=True, help="Do not search for what explains rows that differ.")
@asks_functions(in_roles=True, keeps=True)
@ends_in_page
def vectors(
    request: AuditRequest,
    file: str | None,
    of_rows: ReadOptions,
    rows: int,
    also: tuple[str, ...],
    every_row: bool,
    table: Path | None,
    whole: bool,
    no_explanation: bool,
    asked: EndpointOptions,
    shown: OutputOptions,
) -> int:
    """Are the vectors in STORE sound, and did CHECKPOINT build them? That may also be an endpoint or a Python object.

    STORE is where the vectors are: an export (Parquet, Arrow, CSV, JSON, NumPy …), a database's file, the folder of a
    vector store, or an address; docs/vectors.md lists them. It is only read; of several collections, each is looked at
    unless --from names one. Without CHECKPOINT, the vectors alone are
    looked at. Exit code 0 if nothing is wrong, 1 if the index is not sound or not wholly the checkpoint's, 2 if that
    could not be told.
    """
    from embaudit.api.vectors import most_of, run
    from embaudit.embedders.opened import is_checkpoint
    from embaudit.questions.vectors.parts import look_at_each
    from embaudit.stores.place import SeveralParts
    from embaudit.words.errors import UsageError

    if file is None and (every_row or table is not None or also):
        raise UsageError(
            "--all, --table and --also need a checkpoint to compare with.",
            next_step="embaudit vectors CHECKPOINT STORE",
        )
    functions = [] if file is None else [request.checkpoint, *also]
    asked.say_that_texts_leave(functions, f"those of {rows:,} rows", "your texts would leave this one")

    def look(part: str | None) -> StoredReport:
        return run(
            None if file is None else request,
            file or request.checkpoint,
            replace(
                of_rows,
                allow_pickle=request.allow_pickle,
                most=most_of(whole or every_row or table is not None),
                seed=request.seed,
                part=part,
            ),
            asked=asked.of(*functions),
            rows=rows,
            seed=request.seed,
            also=also,
            every_row=every_row,
            table=table,
            with_explanation=not no_explanation,
            progress=progress_lines(),
            say=say,
        )

    try:
        return shown.show(look(of_rows.part))
    except SeveralParts as several:
        # Each asks for as many texts as one: where these cost money, it is the user's to say.
        if table is not None or not all(map(is_checkpoint, functions)):
            raise
        return shown.show(look_at_each(file or request.checkpoint, several.names, look))
