"""``embaudit audit``: audit a checkpoint.

Commands for a single measure: run and publish an audit of it, and print only its section.

``embaudit impact``: measure what sticky tokens do to retrieval, clustering, classification and similarity.

``embaudit tempscale``: test whether a lower attention temperature helps a checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from embaudit.api.run import refuse_early, run_audit
from embaudit.cli.options import CHECKPOINT_FIELDS, as_text, request_options
from embaudit.questions.audit import AuditRequest
from embaudit.system.processors import peak_memory
from embaudit.words.errors import UsageError
from embaudit.words.sentences import visible
from embaudit_flows.server.settings import set_defaults

if TYPE_CHECKING:
    from embaudit_flows.audit import AuditOutcome


@click.command()
@request_options(
    *("profile", "measures", "measure_settings", "corpora", "pairs", "draw", "warehouse"),
    *("policy", "gate", "notify", "query_prompt", "document_prompt", *CHECKPOINT_FIELDS),
)
@click.option(
    "--backbone",
    metavar="CHECKPOINT",
    help="Also audit the backbone and store the differences; 'card' takes the one named in the model card or config.",
)
@click.option("--full", "is_full", is_flag=True, help="Print every section, not only findings and the worst tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines, and a line per step where there is no terminal.")
def audit(request: AuditRequest, backbone: str | None, is_full: bool, as_json: bool, logs: bool) -> None:
    """Audit CHECKPOINT: packaged:NAME, a local folder, or owner/name@revision on the hub.

    Running the same command again continues where it stopped and recomputes nothing.
    """
    began = time.monotonic()
    refuse_early(request, backbone)
    set_defaults(show_logs=logs)

    from rich.console import Console

    from embaudit.cli.waiting import TerminalDisplay
    from embaudit.steps.progress import shown_on
    from embaudit.words.errors import ProblemFound

    console = Console(stderr=True)
    asked = f"Auditing [bold]{as_text(request.checkpoint)}[/bold], profile {as_text(request.profile)} …"
    console.print(asked, highlight=False)
    found: ProblemFound | None = None
    with TerminalDisplay(console, show_steps=logs) as display, shown_on(display):
        try:
            outcome, both = run_audit(request, backbone)
        except ProblemFound as error:
            # The audit is done and published: show it before exiting with its code.
            found, outcome, both = error, error.audit, None
    if as_json:
        click.echo((both or outcome).model_dump_json(indent=1))
    else:
        print_outcome(outcome, request.warehouse, is_full=is_full, seconds=time.monotonic() - began)
    if found is not None:
        raise found


def print_outcome(outcome: AuditOutcome, warehouse: str | None, *, is_full: bool, seconds: float) -> None:
    """Print the audit's page, what it read and what the command cost, a backbone's audit included."""
    from embaudit.pages.text import print_page

    print_page(outcome.page(), is_full=is_full)
    print_reading(outcome)
    print_cost(seconds)
    if outcome.verdict.get("kind", "not checked") != "not checked":
        # Its page begins with it, which may be screens above.
        click.echo(visible(f"Verdict: {outcome.verdict['line']}"))
    click.echo(visible(f"Results: {outcome.warehouse}"))
    if outcome.report:
        click.echo(visible(f"Report:  {outcome.report}"))
    if outcome.passport:
        click.echo(visible(f"Passport: {outcome.passport}"))
    where = "" if warehouse is None else f" --warehouse {quote(warehouse)}"
    click.echo(visible(f"Query:   embaudit query worst-tokens{where}   or   embaudit query 'SELECT …'{where}"))
    if outcome.gate is not None:
        click.echo(visible(outcome.gate.headline))


def print_reading(outcome: AuditOutcome) -> None:
    """Print what was read and dropped of each corpus, and the warnings."""
    for name, origin in outcome.corpora.items():
        click.echo(visible(f"Corpus {name}, {origin}"))
    for warning in outcome.warnings:
        click.echo(visible(f"Warning: {warning}"))


def print_cost(seconds: float) -> None:
    """Print wall time of the whole command and peak memory of this process."""
    click.echo(f"Took {seconds:.0f} s, peak memory {peak_memory() / 1024**3:.1f} GiB.")


TASKS = ("longdocs", "retrieval", "sts")


def require_tasks(sources: Collection[str]) -> None:
    """Raise a UsageError for a corpus without a task."""
    unknown = [name for name in sources if name not in TASKS]
    if unknown:
        raise UsageError(
            f"There is no task for a corpus {unknown[0]!r}.", next_step=f"Choose from: {', '.join(TASKS)}."
        )


def audit_one_measure(request: AuditRequest, *measures: str, as_json: bool, logs: bool) -> None:
    """Run the audit; print its findings and the measures' sections, or everything as JSON."""
    began = time.monotonic()
    refuse_early(request)
    set_defaults(show_logs=logs)

    from rich.console import Console

    from embaudit.cli.waiting import TerminalDisplay
    from embaudit.measures import MEASURES
    from embaudit.pages.text import print_page
    from embaudit.pages.write import audit_page, read_audit
    from embaudit.steps.progress import shown_on

    with TerminalDisplay(Console(stderr=True), show_steps=logs) as display, shown_on(display):
        outcome, _ = run_audit(request, None)
    if as_json:
        click.echo(outcome.model_dump_json(indent=1))
        return
    facts = read_audit(outcome.warehouse, outcome.audit_id)
    sections = [MEASURES[name].parts().page.section(facts) for name in measures]
    print_page(replace(audit_page(facts), sections=[section for section in sections if section]))
    print_reading(outcome)
    print_cost(time.monotonic() - began)
    click.echo(visible(f"Results: {outcome.warehouse}"))


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


@click.command()
@request_options(
    *("corpora", "profile", "warehouse", "query_prompt", "document_prompt", *CHECKPOINT_FIELDS),
    corpora="longdocs: labelled texts; retrieval: a BEIR or LongEmbed folder, the same on the hub "
    "(hub:owner/name/FOLDER), or QMSum's file; sts: scored pairs.  [default: all three, from the embedded samples]",
    profile="Default sizes.",
)
@click.option("--tau", "grid", metavar="T,T,…", help="Temperatures to try.  [default: 1,0.95,0.9,0.8,0.7,0.6,0.5]")
@click.option(
    "--by",
    type=click.Choice(["layer", "head"]),
    multiple=True,
    help="Also search for a τ per layer or per head, starting from the best single one. Repeatable.",
)
@click.option(
    "--to-positions",
    is_flag=True,
    help="Read documents up to the position table's end instead of the configured limit.",
)
@click.option("--texts", type=click.IntRange(min=4), help="Maximum number of labelled texts.")
@click.option("--documents", type=click.IntRange(min=2), help="Maximum number of documents, relevant ones first.")
@click.option("--queries", type=click.IntRange(min=4), help="Maximum number of queries.")
@click.option("--pairs", type=click.IntRange(min=4), help="Maximum number of scored pairs.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--logs", is_flag=True, help="Show Prefect's log lines, and a line per step where there is no terminal.")
def tempscale(
    request: AuditRequest,
    grid: str | None,
    by: tuple[str, ...],
    to_positions: bool,
    as_json: bool,
    logs: bool,
    **sizes: int | None,
) -> None:
    """Test whether a lower attention temperature helps CHECKPOINT, by task and by length.

    τ is chosen on one half of the texts and evaluated on the other; 'yes' requires an interval above 0. Averaged
    pieces, whitening and centring are evaluated on the same half for comparison. This runs and publishes an audit with
    only the measure tempscale.
    """
    changes = _changes(request.corpora, grid, by, to_positions, **sizes)
    request = request.changed(measures=["tempscale"], measure_settings={"tempscale": changes})
    audit_one_measure(request, "tempscale", as_json=as_json, logs=logs)


def _changes(
    sources: dict[str, str], grid: str | None, by: tuple[str, ...], to_positions: bool, **sizes: int | None
) -> dict[str, Any]:
    """The options as changes to the profile's settings.

    Raises:
        UsageError: if a corpus is none of the three, or the grid is not a list of temperatures.
    """
    require_tasks(sources)
    changes: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    if sources:
        changes["corpora"] = list(sources)
    if by:
        changes["by"] = list(by)
    if to_positions:
        changes["reads"] = "positions"
    if grid is not None:
        try:
            changes["grid"] = [float(one) for one in grid.split(",")]
        except ValueError as error:
            raise UsageError(f"--tau {grid} is not a list of numbers.", next_step="Write --tau 1,0.9,0.8") from error
        if any(not 0 < tau < float("inf") for tau in changes["grid"]):
            raise UsageError(
                f"--tau {grid}: temperatures divide the logits and must be greater than 0.",
                next_step="Use numbers above 0, for example between 0.5 and 1.",
            )
    return changes
