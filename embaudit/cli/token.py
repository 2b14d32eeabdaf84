"""``embaudit token``: test whether given tokens are sticky, without a scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from embaudit.cli.options import CHECKPOINT_FIELDS, request_options
from embaudit.cli.server import prepare_prefect
from embaudit.cli.waiting import TerminalDisplay
from embaudit.declared.document import Column, Table, Value
from embaudit.declared.figure import FULL
from embaudit.pages.text import console, print_part, print_table
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import UsageError
from embaudit.words.estimate import Estimate

PROTOCOLS = ("definition", "retention", "reference")


@click.command()
@request_options("pairs", "profile", *CHECKPOINT_FIELDS, profile="Profile with the number of sentences and controls.")
@click.argument("tokens", nargs=-1, required=True)
@click.option(
    "--protocol",
    "protocols",
    type=click.Choice(PROTOCOLS),
    multiple=True,
    default=("definition", "retention"),
    help="definition and retention share their encodes; reference is the published code's protocol. Repeatable.  "
    "[default: definition, retention]",
)
@click.option("--corpus", metavar="SOURCE", default="sample", help="Source of the sentences if --pairs is not given.")
@click.option(
    "--controls",
    type=click.IntRange(min=1),
    help="Number of ordinary tokens to compare with.  [default: the profile's]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with one object per token.")
def token(
    request: AuditRequest,
    tokens: tuple[str, ...],
    protocols: tuple[str, ...],
    corpus: str,
    controls: int | None,
    as_json: bool,
) -> None:
    """Test whether TOKENS of CHECKPOINT are sticky, without a scan.

    A TOKEN is an id, a vocabulary string (##ing), a text that is one token, text:7 for the text 7, or @FILE with one of
    these per line. The first call for a checkpoint encodes its whole vocabulary to get u, whatever the profile; later
    calls reuse it. Everything is in float32, unless --dtype says otherwise.
    """
    wanted = _expand_files(tokens)
    prepare_prefect(show_logs=False)

    from embaudit.steps.progress import shown_on
    from embaudit_flows.plan import plan_audit
    from embaudit_flows.server.temporary import await_server
    from embaudit_flows.token import look_at_tokens

    plan = plan_audit(request.changed(measures=["sticky"]))
    await_server()
    with TerminalDisplay(Console(stderr=True)) as display, shown_on(display):
        found = look_at_tokens(plan, wanted, protocols, corpus, controls)
    if as_json:
        click.echo(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False))
        return
    _print(found)


def _expand_files(tokens: tuple[str, ...]) -> list[str]:
    """The arguments with each @FILE replaced by its lines.

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
                next_step="To pass a token that starts with @, use its id.",
            ) from error
        found += [line.strip("\r") for line in lines if line.strip()]
    if not found:
        raise UsageError("The files contain no tokens.", next_step="Write one per line: an id, a string or a text.")
    return found


def _print(found: list[dict[str, Any]]) -> None:
    """Print one table for all tokens."""
    out, first = console(), found[0]
    in_half = "" if first["dtype"] == FULL else f" All in {first['dtype']}."
    columns = [Column("token"), Column("id", "d"), Column("category"), Column("origin")]
    if "rho_0" in first:
        print_part(
            f"u = {first['u']:.4f}; {first['points']:,} points ({first['draws']} draws, {first['anchors']} anchors), "
            f"{first['points_below_u']:,} of them below u; "
            f"ρ_0 = {first['rho_0']:.4f}; against {first['controls']} ordinary tokens.{in_half}",
            out,
        )
        columns += [Column("ρ prefix/suffix/random", is_right=True), Column("pull [95 %]", ".3f")]
        columns += [Column("retention [95 %]", ".3f"), Column("loss", ".3f"), Column("focal point", ".2f")]
        columns.append(Column("severity"))
    if "value" in first:
        columns += [Column("reference value", ".4f"), Column("score", ".2f")]
    print_table(Table(columns, [_cells(row) for row in found], brief=len(found)), out)
    if any(not row["is_reachable"] for row in found):
        print_part("Unreachable tokens are measured as ids; no text produces them.", out)


def _cells(row: dict[str, Any]) -> list[Value]:
    cells: list[Value] = [row["token"], row["id"], row["category"], row["origin"]]
    if "rho_0" in row:
        cells.append("/".join(f"{row[f'rho_{name}']:.3f}" for name in ("prefix", "suffix", "random")))
        cells += [Estimate.of(row, name) for name in ("pull", "retention")]
        cells += [row["loss"], row["focal_point"], row["severity"]]
    if "value" in row:
        cells += [row["value"], row["score"]]
    return cells
