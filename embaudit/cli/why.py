"""``embaudit why``: why was it not found?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
@click.argument("store")
@request_options(
    *(name for name in CHECKPOINT_FIELDS if name != "dtype"),
    argument="FUNCTION",
    seed="Random seed of the draws.",
)
@click.option("--query", "queries", multiple=True, metavar="TEXT", help="What was asked. Repeatable.")
@click.option("--expect", multiple=True, metavar="ID", help="The id, or the text, that it should find; one a query.")
@click.option(
    "--golden",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of both: CSV or JSON lines with query and expect.",
)
@click.option(
    "--k", type=click.IntRange(min=1, max=1_000), default=10, show_default=True, help="Results that are shown."
)
@click.option(
    "--min-score",
    type=float,
    metavar="COSINE",
    help="The cosine below which the application shows nothing; of LangChain's FAISS by distance, its relevance.",
)
@click.option(
    "--tokens",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Severe tokens, as `embaudit filter` lists them: what they do in a query and its text.",
)
@click.option("--also", metavar="FUNCTION", help="Another function: where it would put what this one loses.")
@reads_rows
@query_settings
@asks_functions(in_roles=True, keeps=True)
@ends_in_page
def why(
    request: AuditRequest,
    store: str,
    queries: tuple[str, ...],
    expect: tuple[str, ...],
    golden: Path | None,
    k: int,
    min_score: float | None,
    tokens: Path | None,
    also: str | None,
    of_rows: ReadOptions,
    set_: tuple[str, ...],
    asked: EndpointOptions,
    shown: OutputOptions,
) -> int:
    """Why does a search in STORE, with queries that FUNCTION encodes, not find what it should?

    The walk from the query to the place where it was lost: is the row there, was its vector built by FUNCTION from its
    text, how much of that is read, where does exact search rank it and who stands above, does the store's own search
    reach it, would words find it, or another way to ask. --json says where in one word: absent, vector, text, function,
    search, filter, cut-off, or found. Exit code 0 if everything is found, 1 if something is lost, 2 if that could not
    be told.
    """
    from embaudit.api.why import golden_of, run
    from embaudit.questions.why.verdict import ShownResults
    from embaudit.words.errors import UsageError

    if len(queries) != len(expect):
        raise UsageError(
            f"--query was given {len(queries)} times and --expect {len(expect)}.",
            next_step="Give each --query its --expect, in the same order.",
        )
    pairs: dict[str, list[str]] = {}
    for query, answer in zip(queries, expect, strict=True):
        pairs.setdefault(query, []).append(answer)
    cases = golden_of(pairs, None, golden)
    asked.say_that_texts_leave(
        [request.checkpoint], f"{len(cases):,} queries, and about 100 stored texts", "they would leave this one"
    )
    asked.say_that_texts_leave(
        [] if also is None else [also], "the queries, and up to 2,000 stored texts", "they would leave this one"
    )
    report = run(
        request,
        store,
        replace(of_rows, allow_pickle=request.allow_pickle),
        cases,
        function=request.checkpoint,
        asked=asked.of(request.checkpoint, *([] if also is None else [also])),
        also=also,
        cut_off=ShownResults(k, min_score),
        query_settings=settings_of(set_),
        tokens=tokens,
        progress=progress_lines(),
    )
    return shown.show(report)
