"""``embaudit token``: test whether given tokens are sticky, without a scan.

``embaudit against``: SOCM between given texts and a corpus, without a scan or a warehouse.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.cli.options import CHECKPOINT_FIELDS, parse_sources, request_options
from embaudit.cli.waiting import TerminalDisplay
from embaudit.cli.warehouse import prepare_prefect
from embaudit.corpora import load_corpus
from embaudit.declared.document import Column, Table, Value
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import against_corpus
from embaudit.pages.text import console, print_part, print_table
from embaudit.questions.audit import AuditRequest
from embaudit.warehouse.regression import FULL
from embaudit.words.errors import UsageError
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import visible

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


@click.command()
@request_options(*CHECKPOINT_FIELDS)
@click.argument("texts", nargs=-1, required=True)
@click.option(
    "--corpus",
    metavar="NAME=SOURCE",
    default="msmarco=sample",
    show_default=True,
    help="Corpus of texts to compare with.",
)
@click.option(
    "--first",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Number of texts to read from the corpus.",
)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Pairs to show for each text.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with one object per pair.")
def against(request: AuditRequest, texts: tuple[str, ...], corpus: str, first: int, top: int, as_json: bool) -> None:
    """Compare TEXTS with a corpus by SOCM under CHECKPOINT, largest first.

    A large SOCM means that the two texts are close after mean pooling although their tokens are spread differently.
    """
    ((name, source),) = parse_sources((corpus,)).items()
    found = load_corpus(name, source, limit=first)
    if found.kind != "texts":
        raise UsageError(
            f"The corpus {name} holds pairs, not texts.",
            next_step="For pairs: embaudit audit CHECKPOINT --measures socm --corpus " + corpus,
        )
    encoder = Encoder(load_checkpoint(request.checkpoint, request.load_options))
    rows = compare(encoder, texts, [one.text for one in found.texts], top)
    if as_json:
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        _print_pairs(rows, len(found.texts), name)
    click.echo(visible(f"Corpus {name}, {found.source}: {found.counts}"), err=as_json)


def compare(encoder: Any, texts: tuple[str, ...], passages: list[str], top: int) -> list[dict[str, Any]]:
    """The pairs with the largest SOCM for each text, as plain values.

    Raises:
        UsageError: if a text has no cloud (its token embeddings average to zero).
    """
    own, undefined = clouds_of(encoder.token_embeddings(list(texts)))
    if undefined:
        raise UsageError(
            f"SOCM is undefined for {texts[undefined[0].position]!r}: its token embeddings average to zero.",
            next_step="Leave it out, or give other texts.",
        )
    others, _ = clouds_of(encoder.token_embeddings(passages))
    blocks = list(against_corpus(own, others, norms=nuclear_norms_on(encoder.checkpoint.device)))
    columns = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in ("first", "second", "d_mu", "d_sigma", "socm")
    }
    rows = []
    for position, text in enumerate(texts):
        mine = np.flatnonzero(columns["first"] == position)
        for at in mine[np.lexsort((columns["second"][mine], -columns["socm"][mine]))][:top]:
            passage = int(columns["second"][at])
            values = {name: float(columns[name][at]) for name in ("socm", "d_mu", "d_sigma")}
            rows.append({"text": text, **values, "position": passage, "passage": passages[passage]})
    return rows


def _print_pairs(rows: list[dict[str, Any]], passages: int, corpus: str) -> None:
    columns = (Column("SOCM", ".3f"), Column("d_mu", ".3f"), Column("d_sigma", ".3f"), Column("position", "d"))
    for text in dict.fromkeys(row["text"] for row in rows):
        own = [
            (row["socm"], row["d_mu"], row["d_sigma"], row["position"], row["passage"].replace("\n", " "))
            for row in rows
            if row["text"] == text
        ]
        title = f"{text!r} against {passages:,} texts of {corpus}"
        print_table(Table((*columns, Column("text")), own, title, brief=len(own)), console())
