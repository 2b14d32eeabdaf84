"""Position on a page: what evidence gains at each depth, as a table and as a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone, interval
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.measures.position import DEPTHS

# Queries for the section's data, by name, for one audit.
FACTS = {
    "position": "SELECT * FROM position WHERE audit_id = ? ORDER BY tokens_before NULLS FIRST, depth",
    "position_summary": "SELECT * FROM position_summary WHERE audit_id = ?",
}
COLUMNS = {
    **{"depth": Column("depth", is_right=True), "tokens_before": Column("tokens before", ",.0f")},
    **{"gain": Column("gain [95 %]", "+.3f", "+.3f"), "change": Column("change [95 %]", "+.3f", "+.3f")},
    **{"kept": Column("kept", ".0%"), "won": Column("won [95 %]", ".0%", ".0%", is_bar=True)},
    "words_gain": Column("gain, TF-IDF", "+.3f"),
}
OWN, WORDS = "the checkpoint", "TF-IDF"
TONES: dict[str, Tone] = {OWN: "one", WORDS: "soft"}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Position of evidence", list(_parts(facts))) if facts["position"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    for row in facts["position_summary"]:
        unwritten = f" {row['unwritten']:,} that the tokenizer cannot write," if row["unwritten"] else ""
        others = f" {row['left_out']:,} without a partner or filler," if row["left_out"] else ""
        left_out = f" Left out:{unwritten}{others}".rstrip(",") + "." if unwritten or others else ""
        yield (
            f"{row['data_set']}: the evidence of {row['queries']:,} queries, {row['evidence_tokens']:,.0f} tokens of "
            f"their best documents, moved through documents of {row['tokens']:,} tokens; {row['length_limit']:,} "
            f"tokens are read.{left_out}"
        )
    yield Table.of(COLUMNS, facts["position"], "What evidence gains", more="embaudit query position")
    yield chart([row for row in facts["position"] if row["depth"] in DEPTHS])


def chart(rows: list[dict[str, Any]]) -> Chart:
    """The gain over the place of the evidence, within the limit."""
    points = [
        Mark(
            row["tokens_before"],
            row["gain"],
            series=OWN,
            label=f"after {row['tokens_before']:,.0f} tokens: {row['gain']:+.3f}, {row['won']:.0%} of queries won",
        )
        for row in rows
    ]
    bars = [
        mark for row in rows for mark in interval(row["tokens_before"], row["gain_low"], row["gain_high"], series=OWN)
    ]
    words = [
        Mark(row["tokens_before"], row["words_gain"], series=WORDS, label=f"TF-IDF: {row['words_gain']:+.3f}")
        for row in rows
        if row["words_gain"] is not None
    ]
    return Chart(
        "What evidence gains, by its place in a document",
        "How much more similar a query is to a document with its evidence than to the same document with other "
        "evidence in the same place, with 95 % intervals. A level line is good: evidence counts the same wherever it "
        "stands. TF-IDF of the same texts knows no order; its cosines are on another scale, so compare the slopes.",
        [
            [
                Panel(
                    [Layer("rule", bars, is_data=False), Layer("line", words), Layer("line", points)],
                    Axis("tokens before the evidence", ",d"),
                    Axis("gain", "+.2f", has_zero=True),
                    "",
                    *(520, 220),
                )
            ]
        ],
        TONES,
        more="embaudit query position",
    )
