"""Options of commands that read stored vectors."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

SECONDS_BETWEEN_LINES = 5.0
OPTIONS = (
    click.option("--vector", metavar="COLUMN", help="The column of vectors.  [default: the only list of numbers]"),
    click.option(
        "--text",
        metavar="COLUMN",
        help="The column of the texts that were embedded, or what was embedded of several: '{title}\\n{text}'.  "
        "[default: by name]",
    ),
    click.option("--id", "id_", metavar="COLUMN", help="The column that names a row.  [default: by name]"),
    click.option(
        "--texts",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file with the texts of vectors that have none beside them: row by row, or by id.",
    ),
    click.option(
        "--from",
        "part",
        metavar="NAME",
        help="The table, collection or split that is meant where there are several; for a database, also a query.",
    ),
    click.option(
        "--numbers", metavar="TYPE", help="What bytes are, where that is unclear: float32, float16, int8, bits …"
    ),
    click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Only rows with this value. Repeatable."),
)


def reads_rows(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command these options, as ``of_rows``."""

    @wraps(command)
    def with_rows(*args: Any, **given: Any) -> Any:
        from embaudit.stores.place import ReadOptions
        from embaudit.words.errors import UsageError

        where = given.pop("where")
        if wrong := next((one for one in where if "=" not in one), None):
            raise UsageError(f"--where {wrong!r} names no value.", next_step="Write it so: --where COLUMN=VALUE")
        of_rows = ReadOptions(
            given.pop("vector"),
            given.pop("text"),
            given.pop("id_"),
            texts=given.pop("texts"),
            part=given.pop("part"),
            numbers=given.pop("numbers"),
            where=tuple(one.split("=", 1) for one in where),
        )
        return command(*args, of_rows=of_rows, **given)

    for option in reversed(OPTIONS):
        with_rows = option(with_rows)
    return with_rows


def progress_lines() -> Callable[[str, int, int | None], None]:
    """Says on stderr what is done, every few seconds."""
    done: dict[str, int] = {}
    of_what: dict[str, int | None] = {}
    last = time.monotonic()

    def told(what: str, more: int, total: int | None) -> None:
        nonlocal last
        if total != of_what.get(what, total) or (total and done.get(what, 0) >= total):
            # The same is done once more, of other texts.
            done[what] = 0
        of_what[what] = total
        done[what] = done.get(what, 0) + more
        if time.monotonic() - last < SECONDS_BETWEEN_LINES:
            return
        last = time.monotonic()
        of = f" of {total:,}" if total else ""
        click.echo(f"{what.capitalize()}: {done[what]:,}{of} …" if more else f"Looking for {what} …", err=True)

    return told


query_settings = click.option(
    "--setting",
    "set_",
    multiple=True,
    metavar="NAME=NUMBER",
    help="What the application sets in a query (efSearch=64).  [default: the store's own]  Repeatable.",
)


def settings_of(given: tuple[str, ...]) -> dict[str, int]:
    """Settings of a query, as they were typed."""
    from embaudit.words.errors import UsageError

    found = {}
    for one in given:
        name, mark, value = one.partition("=")
        if not mark or not value.strip().isdigit():
            raise UsageError(f"--setting {one!r} names no number.", next_step="Write it so: --setting efSearch=64")
        found[name.strip()] = int(value)
    return found
