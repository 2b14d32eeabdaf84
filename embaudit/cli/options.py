"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

warehouse_option = click.option(
    "--warehouse",
    type=click.Path(dir_okay=False, path_type=Path),
    help="DuckDB file.  [default: EMBAUDIT_WAREHOUSE, or warehouse.duckdb in EMBAUDIT_HOME (.embaudit)]",
)


pairs_option = click.option(
    "--pairs",
    multiple=True,
    metavar="[PURPOSE=]FILE",
    help="Sentence pairs of your own, kept as they are: csv, tsv, json, jsonl or Parquet with sentence1 and sentence2. "
    "PURPOSE is scoring or validation; both without one.",
)


def parse_pairs(given: tuple[str, ...]) -> dict[str, str]:
    """The file of each purpose; a FILE without a purpose is for both.

    Raises:
        UsageError: if a purpose is given two files.
    """
    from embaudit.errors import UsageError

    found: dict[str, str] = {}
    for one in given:
        purpose, separator, file = one.partition("=")
        named = separator and purpose in ("scoring", "validation")
        more = {purpose: file} if named else {"scoring": one, "validation": one}
        if doubled := found.keys() & more.keys():
            raise UsageError(f"--pairs names two files for {' and '.join(sorted(doubled))}.")
        found |= more
    return found


def warehouse_path(given: Path | None) -> Path:
    """The warehouse that a command works on."""
    from embaudit.settings import Settings

    return given.expanduser().absolute() if given else Settings().warehouse_path
