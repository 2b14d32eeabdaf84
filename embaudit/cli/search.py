"""``embaudit search``: does a store's own search find what its vectors hold?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from embaudit.cli.endpoints import EndpointOptions, asks_functions
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.printed import OutputOptions, ends_in_page
from embaudit.cli.stores import progress_lines, query_settings, reads_rows, settings_of

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest
    from embaudit.stores.place import ReadOptions


@click.command()
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name != "dtype"),
    argument="STORE",
    seed="Random seed of the draws.",
)
@click.argument("function", required=False, metavar="[FUNCTION]")
@reads_rows
@click.option(
    "--queries",
    metavar="FILE",
    help="Queries that FUNCTION encodes, or their vectors.  [default: beginnings of stored texts]",
)
@query_settings
@click.option(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.95,
    show_default=True,
    help="Of the ten nearest rows, the share that is wanted.",
)
@click.option(
    "--count", type=click.IntRange(min=2, max=5_000), default=200, show_default=True, help="How many queries are asked."
)
@click.option(
    "--rows",
    type=click.IntRange(min=1, max=20_000),
    help="How many rows are asked for by their own vectors.  [default: 2000; 10000 of a graph in memory]",
)
@asks_functions(in_roles=True, keeps=True)
@ends_in_page
def search(
    request: AuditRequest,
    function: str | None,
    of_rows: ReadOptions,
    queries: str | None,
    set_: tuple[str, ...],
    recall: float,
    count: int,
    rows: int | None,
    asked: EndpointOptions,
    shown: OutputOptions,
) -> int:
    """Does the search of STORE find what its vectors hold?

    The store is asked as an application asks it, beside exact search over the same vectors: recall, rows that no query
    reaches, metrics, filters (--where), and what other settings of a query would give. FUNCTION, a checkpoint, an
    endpoint or a Python object, encodes queries; without it, stored vectors ask for their neighbours. Nothing is
    written to the store. Exit code 0 if it finds them, 1 if not, 2 if that could not be told.
    """
    from embaudit.api.search import run

    if function is not None:
        asked.say_that_texts_leave([function], f"{count:,} queries", "your queries would leave this one")
    report = run(
        request,
        request.checkpoint,
        replace(of_rows, allow_pickle=request.allow_pickle),
        function=function,
        asked=asked.of(function)[0] if function is not None else None,
        queries=queries,
        query_settings=settings_of(set_),
        recall=recall,
        count=count,
        rows=rows,
        progress=progress_lines(),
    )
    return shown.show(report)
