"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from embaudit.address import Warehouse, warehouse_at
from embaudit.errors import UsageError
from embaudit.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])


class _WarehouseType(click.ParamType[Warehouse]):
    """A file, or a DuckLake's address."""

    name = "path or address"

    def convert(self, value: str | Warehouse, param: click.Parameter | None, ctx: click.Context | None) -> Warehouse:
        place = warehouse_at(value)
        if isinstance(place, Path) and place.is_dir():
            self.fail(f"File '{value}' is a directory.", param, ctx)
        return place


warehouse_option = click.option(
    "--warehouse",
    type=_WarehouseType(),
    metavar="PATH",
    help="DuckDB file, or a DuckLake's address.  "
    "[default: EMBAUDIT_WAREHOUSE, or warehouse.duckdb in EMBAUDIT_HOME (.embaudit)]",
)


pairs_option = click.option(
    "--pairs",
    multiple=True,
    metavar="[PURPOSE=]FILE",
    help="Sentence pairs of your own, kept as they are: csv, tsv, json, jsonl or Parquet with sentence1 and sentence2. "
    "PURPOSE is scoring or validation; both without one.",
)


CHECKPOINT_OPTIONS = (
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, mps."),
    click.option("--dtype", default="auto", show_default=True, help="auto, float32, bfloat16, float16."),
    click.option("--pooling", help="Override the declared pooling: mean, cls, lasttoken, max, weightedmean."),
    click.option("--max-length", type=click.IntRange(min=1), help="Override the length limit, in tokens."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    click.option("--allow-pickle", is_flag=True, help="Read pickled weights, which can run any code."),
    click.option("--trust-remote-code", is_flag=True, help="Run model code that comes with the checkpoint."),
)


def checkpoint_options(command: Command) -> Command:
    """How a checkpoint is loaded and run: the same options on every command that does so."""
    for option in reversed(CHECKPOINT_OPTIONS):
        command = option(command)
    return command


def parse_pairs(given: tuple[str, ...]) -> dict[str, str]:
    """The file of each purpose; a FILE without a purpose is for both.

    Raises:
        UsageError: if a purpose is given two files.
    """
    found: dict[str, str] = {}
    for one in given:
        purpose, separator, file = one.partition("=")
        named = separator and purpose in ("scoring", "validation")
        more = {purpose: file} if named else {"scoring": one, "validation": one}
        if doubled := found.keys() & more.keys():
            raise UsageError(f"--pairs names two files for {' and '.join(sorted(doubled))}.")
        found |= more
    return found


def warehouse_path(given: Warehouse | None) -> Warehouse:
    """The warehouse that a command works on."""
    return given or Settings().warehouse_path
