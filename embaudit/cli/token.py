"""``embaudit token``: is this token sticky? A few tokens in full, without a scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from embaudit.cli.display import TerminalDisplay
from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.prefect_setup import prepare_prefect
from embaudit.cli.report_sticky import with_interval
from embaudit.cli.shown import as_text
from embaudit.errors import UsageError
from embaudit.request import AuditRequest

PROTOCOLS = ("definition", "retention", "reference")


@click.command()
@request_options("pairs", "profile", *CHECKPOINT_FIELDS, profile="How many pairs and controls.")
@click.argument("tokens", nargs=-1, required=True)
@click.option(
    "--protocol",
    "protocols",
    type=click.Choice(PROTOCOLS),
    multiple=True,
    default=("definition", "retention"),
    help="definition and retention come from the same encodes; reference is the published code's. Repeatable.  "
    "[default: definition, retention]",
)
@click.option("--corpus", metavar="SOURCE", default="sample", help="Where pairs are drawn from without --pairs.")
@click.option(
    "--controls", type=click.IntRange(min=1), help="Ordinary tokens to compare with.  [default: the profile's]"
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, one object a token.")
def token(
    request: AuditRequest,
    tokens: tuple[str, ...],
    protocols: tuple[str, ...],
    corpus: str,
    controls: int | None,
    as_json: bool,
) -> None:
    """Say whether TOKENS of CHECKPOINT are sticky, without a scan.

    A TOKEN is an id, a string of the vocabulary (##ing), a text that is one token, text:7 for the text 7, or @FILE
    with one of these a line. The first call for a checkpoint encodes its vocabulary for u; later ones find it staged.
    """
    wanted = _from_files(tokens)
    prepare_prefect(show_logs=False)

    from embaudit_flows.plan import plan_audit
    from embaudit_flows.token import look_at_tokens
    from embaudit_tasks.progress import shown_on

    plan = plan_audit(request.changed(measures=["sticky"]))
    with TerminalDisplay(Console(stderr=True)) as display, shown_on(display):
        found = look_at_tokens(plan, wanted, protocols, corpus, controls)
    if as_json:
        click.echo(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False))
        return
    _print(Console(width=None if Console().is_terminal else 150), found)


def _from_files(tokens: tuple[str, ...]) -> list[str]:
    """@FILE arguments replaced by the lines of their files.

    Raises:
        UsageError: if a file cannot be read.
    """
    found: list[str] = []
    for given in tokens:
        if not given.startswith("@") or len(given) == 1:
            found.append(given)
            continue
        try:
            lines = Path(given[1:]).expanduser().read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"The tokens in {given[1:]} cannot be read: {error}",
                next_step="For a token that starts with @ give its id.",
            ) from error
        found += [line.strip("\r") for line in lines if line.strip()]
    if not found:
        raise UsageError("The files hold no token.", next_step="Write one a line: an id, a string or a text.")
    return found


def _print(console: Console, found: list[dict[str, Any]]) -> None:
    """One table for all tokens, a column for every number that a reader compares."""
    first = found[0]
    if "rho_0" in first:
        console.print(
            f"u = {first['u']:.4f}; {first['pairs']} pairs, {first['pairs_below_u']} of them below u; "
            f"ρ_0 = {first['rho_0']:.4f}; against {first['controls']} ordinary tokens.",
            highlight=False,
        )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("token", "id", "category", "origin", *_columns(first)):
        table.add_column(name, no_wrap=True)
    for row in found:
        table.add_row(as_text(row["token"]), str(row["id"]), row["category"], row["origin"], *_columns(row).values())
    console.print(table)
    if any(not row["is_reachable"] for row in found):
        console.print("Unreachable tokens are measured as ids; no text produces them.")


def _columns(row: dict[str, Any]) -> dict[str, str]:
    columns: dict[str, str] = {}
    if "rho_0" in row:
        columns = {
            "ρ prefix/suffix/random": "/".join(f"{row[f'rho_{name}']:.3f}" for name in ("prefix", "suffix", "random")),
            "pull [95 %]": with_interval(row["pull"], row["pull_low"], row["pull_high"]),
            "retention [95 %]": with_interval(row["retention"], row["retention_low"], row["retention_high"]),
            "loss": f"{row['loss']:.3f}",
            "focal point": "" if row["focal_point"] is None else f"{row['focal_point']:.2f}",
            "severity": row["severity"],
        }
    if "value" in row:
        columns["reference value"] = f"{row['value']:.4f}"
        if row["score"] is not None:
            columns["score"] = f"{row['score']:.2f}"
    return columns
