"""``embaudit impact``: measure what sticky tokens do to retrieval, clustering, classification and similarity."""

from __future__ import annotations

from typing import Any

import click

from embaudit.cli.one_measure import audit_one_measure, require_tasks
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import UsageError

COLLECTION = "retrieval"


def _size(value: Any) -> int | str:
    """A number, or ``all``."""
    if value != "all" and not (str(value).isdigit() and int(value) >= 4):
        raise click.BadParameter(f"{value!r} is neither 'all' nor a number of at least 4.")
    return value if value == "all" else int(value)


@click.command()
@request_options(
    *("corpora", "profile", "warehouse", "query_prompt", "document_prompt", *CHECKPOINT_FIELDS),
    corpora="retrieval: a BEIR or LongEmbed folder, the same on the hub (hub:owner/name/FOLDER), or QMSum's file; "
    "longdocs: labelled texts; sts: scored pairs.  [default: all three, from the embedded samples]",
    profile="Default sizes, and how to search for the tokens.",
)
@click.option("--data", metavar="FOLDER", help="Short for --corpus retrieval=FOLDER.")
@click.option(
    "--tokens",
    metavar="TOKEN,TOKEN,…",
    help="Token ids, vocabulary strings, or texts that are one token; text:7 is the text 7.  "
    "[default: the worst found by the measure sticky, under either protocol]",
)
@click.option(
    "--tokens-per-arm",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens to take from each list, and ordinary ones.",
)
@click.option("--documents", type=_size, metavar="N|all", help="Maximum number of documents, relevant ones first.")
@click.option("--queries", type=_size, metavar="N|all", help="Maximum number of queries.")
@click.option("--texts", type=click.IntRange(min=4), metavar="N", help="Maximum number of labelled texts.")
@click.option("--pairs", type=click.IntRange(min=4), metavar="N", help="Maximum number of scored pairs.")
@click.option("--remedies", is_flag=True, help="Also try each remedy on the same tasks, and measure its cost.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines, and a line per step where there is no terminal.")
def impact(
    request: AuditRequest,
    data: str | None,
    tokens: str | None,
    remedies: bool,
    as_json: bool,
    logs: bool,
    **sizes: int | str | None,
) -> None:
    """Measure what sticky tokens in texts do to the tasks that CHECKPOINT is used for.

    Tokens (ordinary ones, and the worst sticky ones found or given) are inserted into all texts and into half of them,
    one copy per ten words. An earlier search with the same settings is reused.
    """
    sources = request.corpora
    if data is not None:
        if COLLECTION in sources:
            raise UsageError("--data and --corpus retrieval=… both give the collection.", next_step="Leave one out.")
        sources = {COLLECTION: data, **sources}
    require_tasks(sources)
    changes: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    if sources:
        changes["corpora"] = list(sources)
    if tokens is not None:
        # A comma by itself is a token too.
        changes["tokens"] = [","] if tokens == "," else [one.strip() for one in tokens.split(",") if one.strip()]
    asked = ("impact", "mitigation") if remedies else ("impact",)
    request = request.changed(
        measures=[*(() if changes.get("tokens") else ("sticky",)), *asked],
        corpora=sources,
        measure_settings=dict.fromkeys(asked, changes),
    )
    audit_one_measure(request, *asked, as_json=as_json, logs=logs)
