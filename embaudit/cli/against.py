"""``embaudit against``: SOCM between given texts and a corpus, without a scan or a warehouse."""

from __future__ import annotations

import json
from typing import Any

import click
import numpy as np

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.cli.options import CHECKPOINT_FIELDS, parse_sources, request_options
from embaudit.corpora.load import load_corpus
from embaudit.declared.document import Column, Table
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import against_corpus
from embaudit.pages.text import console, print_table
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import UsageError
from embaudit.words.sentences import visible


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
        _print(rows, len(found.texts), name)
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


def _print(rows: list[dict[str, Any]], passages: int, corpus: str) -> None:
    columns = (Column("SOCM", ".3f"), Column("d_mu", ".3f"), Column("d_sigma", ".3f"), Column("position", "d"))
    for text in dict.fromkeys(row["text"] for row in rows):
        own = [
            (row["socm"], row["d_mu"], row["d_sigma"], row["position"], row["passage"].replace("\n", " "))
            for row in rows
            if row["text"] == text
        ]
        title = f"{text!r} against {passages:,} texts of {corpus}"
        print_table(Table((*columns, Column("text")), own, title, brief=len(own)), console())
