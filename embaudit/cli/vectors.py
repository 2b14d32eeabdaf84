"""``embaudit vectors``: what stored vectors show, and whether a checkpoint built them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import AskedOptions, asks_functions, say
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.printed import Shown, ends_in_page

if TYPE_CHECKING:
    from embaudit.request import AuditRequest

SECONDS_BETWEEN_LINES = 5.0


@click.command()
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name != "dtype"),
    argument="[CHECKPOINT]",
    seed="Random seed of the sample.",
)
@click.argument("file", required=False, metavar="FILE")
@click.option("--vector", metavar="COLUMN", help="The column of vectors.  [default: the only list of numbers]")
@click.option("--text", metavar="COLUMN", help="The column of the texts that were embedded.  [default: by name]")
@click.option("--id", "id_", metavar="COLUMN", help="The column that names a row.  [default: by name]")
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The texts of an .npy file: a line each, or .jsonl.",
)
@click.option("--from", "from_table", metavar="TABLE", help="The table of a database that has several.")
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
@click.option("--no-explanation", is_flag=True, help="Do not search for what explains rows that differ.")
@asks_functions(in_roles=True, keeps=True)
@ends_in_page
def vectors(
    request: AuditRequest,
    file: str | None,
    vector: str | None,
    text: str | None,
    id_: str | None,
    texts: Path | None,
    from_table: str | None,
    rows: int,
    also: tuple[str, ...],
    every_row: bool,
    table: Path | None,
    no_explanation: bool,
    asked: AskedOptions,
    shown: Shown,
) -> int:
    """Are the vectors in FILE sound, and did CHECKPOINT build them? That may also be an endpoint or a Python object.

    FILE is an index's export: Parquet (a file or a folder), .arrow or .feather, .jsonl (also .gz), .npy with --texts, a
    DuckDB file, or the address of a PostgreSQL database. Without CHECKPOINT, the vectors alone are looked at. Exit code
    0 if nothing is wrong, 1 if the index is not sound or not wholly the checkpoint's, 2 if that could not be told.
    """
    from embaudit.api.vectors import run
    from embaudit.errors import UsageError
    from embaudit.vector_files.columns import AskedColumns

    if file is None and (every_row or table is not None or also):
        raise UsageError(
            "--all, --table and --also need a checkpoint to compare with.", next_step="embaudit vectors CHECKPOINT FILE"
        )
    functions = [] if file is None else [request.checkpoint, *also]
    asked.say_that_texts_leave(functions, f"those of {rows:,} rows", "your texts would leave this one")
    report = run(
        None if file is None else request,
        file or request.checkpoint,
        AskedColumns(vector, text, id_),
        asked=asked.of(*functions),
        texts=texts,
        from_table=from_table,
        rows=rows,
        seed=request.seed,
        also=also,
        every_row=every_row,
        table=table,
        with_explanation=not no_explanation,
        progress=_lines(),
        say=say,
    )
    return shown.show(report)


def _lines() -> Callable[[str, int, int | None], None]:
    """Says on stderr what is done, every few seconds."""
    done: dict[str, int] = {}
    last = time.monotonic()

    def told(what: str, more: int, total: int | None) -> None:
        nonlocal last
        done[what] = done.get(what, 0) + more
        if time.monotonic() - last < SECONDS_BETWEEN_LINES:
            return
        last = time.monotonic()
        of = f" of {total:,}" if total else ""
        click.echo(f"{what.capitalize()}: {done[what]:,}{of} …" if more else f"Looking for {what} …", err=True)

    return told
