"""Chunks on a page: scores by piece size, as a table and as lines, and the queries whose passage is read or cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone, interval
from embaudit.declared.document import Column, Part, Section, Table

# Queries for the section's data, by name, for one audit.
ORDER = "CASE way WHEN 'whole' THEN 0 WHEN 'best' THEN 1 ELSE 2 END, size"
FACTS = {
    "chunk": f"SELECT * FROM chunk WHERE audit_id = ? ORDER BY {ORDER}",
    "chunk_length": f"SELECT * FROM chunk_length WHERE audit_id = ? ORDER BY part DESC, {ORDER}",
    "chunk_choice": "SELECT * FROM chunk_choice WHERE audit_id = ?",
}
WAYS = {"whole": "whole", "best": "best piece", "mean": "mean of pieces"}
WORDS = "BM25, best piece"
TONES: dict[str, Tone] = {"best piece": "one", "mean of pieces": "two", WORDS: "soft"}
SEARCHED = {"way": Column("searched", words=WAYS), "size": Column("tokens", ",d")}
SCORES = {
    "score": Column("nDCG@10 [95 %]", ".3f", ".3f", is_bar=True),
    "gain": Column("gain [95 %]", "+.3f", "+.3f"),
    "words_score": Column("BM25", ".3f"),
}
WHOLES_AND_PIECES = {**SEARCHED, "pieces": Column("pieces", ".1f"), **SCORES}
BY_LENGTH = {"part": Column("of queries whose"), "queries": Column("queries", ",d"), **SEARCHED, **SCORES}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Chunk size", list(_parts(facts))) if facts["chunk"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    for choice in facts["chunk_choice"]:
        made = (
            f"{choice['documents']:,} documents, each composed of {choice['passages']} passages of "
            f"{choice['data_set']} in a random order"
            if choice["is_composed"]
            else f"{choice['documents']:,} documents of {choice['data_set']}"
        )
        unwritten = f" The tokenizer lacks most tokens of {choice['unwritten']:,}." if choice["unwritten"] else ""
        yield (
            f"{made}: {choice['tokens']:,.0f} tokens on average; {choice['truncated']:,} are longer than the "
            f"{choice['length_limit']:,} that are read.{unwritten}"
        )
    yield Table.of(
        WHOLES_AND_PIECES, facts["chunk"], "Documents found whole and in pieces", more="embaudit query chunks"
    )
    yield chart(facts["chunk"])
    if facts["chunk_length"]:
        yield Table.of(
            BY_LENGTH,
            facts["chunk_length"],
            "The same, by whether what is asked for is within the length limit",
            more="embaudit query chunks",
        )


def chart(rows: list[dict[str, Any]]) -> Chart:
    """nDCG@10 over the size of pieces; the whole is a line."""
    cut = [row for row in rows if row["way"] != "whole"]
    wholes = [row for row in rows if row["way"] == "whole"]
    points = [
        Mark(
            row["size"],
            row["score"],
            series=WAYS[row["way"]],
            label=f"{WAYS[row['way']]}, {row['size']:,} tokens: {row['score']:.3f}",
        )
        for row in cut
    ]
    bars = [
        mark
        for row in cut
        for mark in interval(row["size"], row["score_low"], row["score_high"], series=WAYS[row["way"]])
    ]
    words = [
        Mark(row["size"], row["words_score"], series=WORDS, label=f"{WORDS}: {row['words_score']:.3f}")
        for row in cut
        if row["way"] == "best" and row["words_score"] is not None
    ]
    smallest = min((row["size"] for row in cut), default=1)
    return Chart(
        "nDCG@10 by the size of pieces",
        "How well documents are found by the best of their pieces, and by the mean of these, with 95 % intervals. "
        "Dashed: whole documents, cut at the length limit. Where a line is above it, pieces find what one vector per "
        "document does not; the highest point of the best piece is the size to store.",
        [
            [
                Panel(
                    [
                        Layer(
                            *("rule", [Mark(y=row["score"], label="whole documents") for row in wholes], "soft"),
                            is_dashed=True,
                        ),
                        Layer(
                            *("text", [Mark(smallest, row["score"], label="whole") for row in wholes], "soft"),
                            is_data=False,
                        ),
                        Layer("rule", bars, is_data=False),
                        Layer("line", words),
                        Layer("line", points),
                    ],
                    Axis("tokens of a piece", ",d", is_log=True),
                    Axis("nDCG@10", ".2f", has_zero=True),
                    "",
                    *(520, 220),
                )
            ]
        ],
        TONES,
        more="embaudit query chunks",
    )
