"""What the tables of position show: findings, and the section of a page.

Where evidence counts for less, how many documents are longer than what is read, and what evidence gains at each depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone
from embaudit.declared.chart import interval as interval_marks
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval, number
from embaudit.measures.position import DEPTHS, START, PositionSettings

# Two passages in the wrong place then count as much as one in the right place. On the embedded sample, the least at any
# depth is .59 of the start for all-MiniLM-L6-v2 (.56 to .61 with other numbers of queries), .46 for the end of the 126
# tokens that paraphrase-MiniLM-L3-v2 reads (.40 to .46).
HALF = 0.5
EVIDENCE = Rule(
    "evidence",
    "`position.gain` and `position.change` of the weakest depth",
    look_if=f"below {number(HALF)} of the gain at the start (or that at the start below {number(HALF)} of another), "
    "interval of the change clear of 0",
    reason="two passages in the wrong place then count as much as one in the right place. On the sample the least is "
    ".59 for all-MiniLM-L6-v2 and .46 for paraphrase-MiniLM-L3-v2. `not measured` below ten pairs of queries, or if "
    "evidence gains nothing anywhere",
)
BEYOND = Rule(
    "beyond",
    "`position_summary.truncated` / `documents`",
    look=0.05,
    is_share=True,
    reason="as for `socm.cut_texts`; not a problem by itself, since documents can be cut into pieces",
)
PIECES = "Cut documents into pieces before encoding: embaudit audit CHECKPOINT --measures chunks"


def findings(rows: Rows, settings: PositionSettings) -> Iterator[Finding]:
    """Two; none if nothing was measured."""
    by_depth = {row["depth"]: row for row in rows("position")}
    for summary in rows("position_summary"):
        yield _evidence([by_depth[depth] for depth in DEPTHS])
        yield _beyond(summary)


def _evidence(read: list[dict[str, Any]]) -> Finding:
    start = next(row for row in read if row["depth"] == START)
    others = [row for row in read if row is not start]
    if start["gain_low"] is None or all((row["gain_low"] or 0) <= 0 for row in read):
        return EVIDENCE.finding(
            "not measured",
            f"Whether evidence counts less further back is not known: moved in {start['queries']} queries, it gains "
            f"{start['gain']:+.3f}{interval(start['gain_low'], start['gain_high'], '+.3f')} at the start.",
            "Either there are too few queries, or documents of this length are not found by what they say.",
            "Audit with a collection of at least 50 judged queries: --corpus retrieval=FOLDER",
        )
    # Most models prefer the start; a decoder that pools its last token may prefer the end.
    behind = min(others, key=lambda row: row["gain"])
    ahead = max(others, key=lambda row: row["gain"])
    is_weaker = behind["gain"] < HALF * start["gain"] and (behind["change_high"] or 0) < 0
    is_stronger = start["gain"] < HALF * ahead["gain"] and (ahead["change_low"] or 0) > 0
    level: Level = "look" if is_weaker or is_stronger else "ok"
    shown = behind if is_weaker or not is_stronger else ahead
    kept = f", {shown['kept']:.0%} of that," if shown["kept"] is not None else ""
    return EVIDENCE.finding(
        level,
        f"Evidence at the start of a document gains {start['gain']:.3f}, and {shown['gain']:.3f}{kept} after "
        f"{shown['tokens_before']:,.0f} tokens "
        f"({shown['change']:+.3f}{interval(shown['change_low'], shown['change_high'], '+.3f')}).",
        f"What a document says {'late' if shown is behind else 'early'} counts less than half as much as what it "
        f"says {'early' if shown is behind else 'late'}: of two documents with the same passage, the one that "
        f"{'begins' if shown is behind else 'ends'} with it is found first.",
        PIECES,
        *(shown[f"change{end}"] for end in ("", "_low", "_high")),
    )


def _beyond(summary: dict[str, Any]) -> Finding:
    share = summary["truncated"] / summary["documents"]
    return BEYOND.finding(
        BEYOND.level(share),
        f"Of a document, {summary['length_limit']:,} tokens are read; {share:.0%} of the {summary['documents']:,} "
        f"documents in {summary['data_set']} are longer.",
        "What is not read is in no vector: no query finds it.",
        PIECES,
        share,
    )


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
        mark
        for row in rows
        for mark in interval_marks(row["tokens_before"], row["gain_low"], row["gain_high"], series=OWN)
    ]
    words = [
        Mark(row["tokens_before"], row["words_gain"], series=WORDS, label=f"TF-IDF: {row['words_gain']:+.3f}")
        for row in rows
        if row["words_gain"] is not None
    ]
    panel = Panel(
        [Layer("rule", bars, is_data=False), Layer("line", words), Layer("line", points)],
        Axis("tokens before the evidence", ",d"),
        Axis("gain", "+.2f", has_zero=True),
        width=520,
        height=220,
    )
    return Chart(
        "What evidence gains, by its place in a document",
        "How much more similar a query is to a document with its evidence than to the same document with other "
        "evidence in the same place, with 95 % intervals. A level line is good: evidence counts the same wherever it "
        "stands. TF-IDF of the same texts knows no order; its cosines are on another scale, so compare the slopes.",
        [[panel]],
        TONES,
        more="embaudit query position",
    )
