"""Placement on a page: loss by strategy for severe and for ordinary tokens, and examples of the worst positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone, interval
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.measures.placement import ROTATION, STRATEGIES

# Queries for the section's data, by name, for one audit.
FACTS = {
    "placement": (
        "SELECT * FROM placement WHERE audit_id = ? ORDER BY role DESC, strategy <> 'rotation', loss DESC, strategy"
    ),
    "placement_tokens": (
        "SELECT * FROM placement_token WHERE audit_id = ? "
        "QUALIFY row_number() OVER (PARTITION BY token_id ORDER BY loss DESC, strategy) = 1 "
        "ORDER BY loss DESC, token_id"
    ),
}
WORDS = {
    "rotation": "as in the search",
    "prefix": "at the beginning",
    "suffix": "at the end",
    "random": "at random",
    "interleaved": "between the words",
    "sentence_ends": "at the ends of sentences",
    "best_random": "worst of several random",
    "greedy": "greedy search",
    "gradient": "gradient-guided search",
}
TONES: dict[str, Tone] = {"severe": "problem", "ordinary": "soft"}
LOSS = {"strategy": Column("positions", words=WORDS), "loss": Column("loss [95 %]", ".3f", ".2f")}
WHERE = {"copies": Column("copies", ".1f"), "place": Column("where", ".2f")}
STRATEGY_COLUMNS = {
    **{"role": Column("tokens"), **LOSS, "change": Column("change [95 %]", "+.3f", "+.2f")},
    **{"loss_seen": Column("seen", ".3f"), **WHERE, "encodes": Column("encodes", ",d")},
}
TOKEN_COLUMNS = {"token": Column("token"), **LOSS, **WHERE, "example": Column("first sentence", is_prose=True)}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    rows = facts["placement"]
    return Section("Where sticky tokens do most harm", list(_parts(rows, facts["placement_tokens"]))) if rows else None


def _parts(rows: list[dict[str, Any]], worst: list[dict[str, Any]]) -> Iterator[Part]:
    first = rows[0]
    yield _chart(rows)
    yield Table.of(
        STRATEGY_COLUMNS,
        rows,
        f"Up to {first['budget']} copies of {first['tokens']:,} severe tokens in {first['draws']:,} sentences; seen: "
        "the loss on the sentences that the search used; where: 0 is the start of the text, 1 its end",
        more="embaudit query placement",
    )
    yield Table.of(TOKEN_COLUMNS, worst, "Each token where it hurts most", more="embaudit query placement-tokens")


def _chart(rows: list[dict[str, Any]]) -> Chart:
    places = [WORDS[name] for name in STRATEGIES if any(row["strategy"] == name for row in rows)]
    marks, ends = [], []
    for row in rows:
        words = WORDS[row["strategy"]]
        said = f"{row['role']}, {words}: {row['loss']:.3f}"
        marks.append(Mark(x=row["loss"], y=words, series=row["role"], label=said))
        ends += [
            Mark(x=one.y, x2=one.y2, y=words, series=row["role"])
            for one in interval(words, row["loss_low"], row["loss_high"])
        ]
    unit = [Mark(x=row["loss"]) for row in rows if row["strategy"] == ROTATION and row["role"] == "severe"]
    layers = [
        Layer("rule", unit, "soft", is_dashed=True, is_data=False),
        Layer("rule", ends, is_data=False),
        Layer("point", marks, size=2),
    ]
    return Chart(
        "Loss by position of the copies",
        "Each point is the loss under one strategy, with its 95 % interval, for severe tokens (mean) and ordinary "
        "tokens (median). The dashed line is the severe tokens' loss at the positions of the search. Points to its "
        "right are positions that do more harm than the audit's severity suggests.",
        [[Panel(layers, Axis("loss", ".2f"), Axis(categories=places), width=500, height=240)]],
        tones=TONES,
        more="embaudit query placement",
    )
