"""What the tables of chunks show: findings, and the section of a page.

Whether documents are better cut, whether what is read crowds a vector, and scores by piece size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone
from embaudit.declared.chart import interval as interval_marks
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval, number
from embaudit.measures.chunks import ChunksSettings

# On composed documents, whole ones lose far more: .34 for all-MiniLM-L6-v2 and .52 for paraphrase-MiniLM-L3-v2, which
# read 254 and 126 of 448 tokens.
WORTH = 0.02
# Without an interval, or with one that reaches from no gain to more than this, the queries are too few to tell.
UNSEEN = 0.1
WHOLE = Rule(
    "whole",
    "`chunk_choice.gain` (the way is chosen on half of the queries, and its gain reported on the other half)",
    look=WORTH,
    look_if="interval above 0, and above {look}",
    reason="less is not worth several vectors per document. Composed documents are longer than most limits, so nearly "
    "every checkpoint of 512 tokens or fewer gets it there: it is about documents of that length. `not measured` "
    f"without an interval, or if it reaches from 0 to more than {number(UNSEEN)}",
)
CROWDING = Rule(
    "crowding",
    "`chunk_length.gain` of the chosen way, queries whose passage or document is read whole",
    look=WORTH,
    look_if=WHOLE.look_if,
    reason="the length limit plays no part in this loss. `not measured` below ten such queries or documents, or as "
    "above",
)
READ = ("document read whole", "passage read")
SAID_WAYS = {"best": "the best of its pieces", "mean": "the mean of its pieces"}
MORE = "Audit with a collection of long documents and at least 100 judged queries: --corpus retrieval=FOLDER"


def findings(rows: Rows, settings: ChunksSettings) -> Iterator[Finding]:
    """At most two; none if nothing was measured."""
    for choice in rows("chunk_choice"):
        yield _whole(choice)
        wanted = [row for row in rows("chunk_length") if (row["way"], row["size"]) == (choice["way"], choice["size"])]
        yield _crowding(choice, next((row for row in wanted if row["part"] in READ), None))


def _whole(choice: dict[str, Any]) -> Finding:
    level = _level(choice)
    bounds = interval(choice["gain_low"], choice["gain_high"], "+.3f")
    sentence = (
        f"{_documents(choice)} scores {choice['whole']:.3f} whole, and {choice['whole'] + choice['gain']:.3f} by "
        f"{SAID_WAYS[choice['way']]} of {choice['size']:,} tokens ({choice['gain']:+.3f}{bounds}, held out)."
    )
    limit = (
        f"{choice['truncated']:,} of {choice['documents']:,} documents are longer than the "
        f"{choice['length_limit']:,} tokens read."
    )
    return WHOLE.finding(
        level,
        sentence,
        *_words(
            level,
            f"One vector per document loses what pieces find. {limit}",
            f"Store a vector for each piece of about {choice['size']:,} tokens and rank a document by "
            + ("its best one." if choice["way"] == "best" else "the mean of them."),
        ),
        *_numbers(choice),
    )


def _crowding(choice: dict[str, Any], row: dict[str, Any] | None) -> Finding:
    if row is None:
        return CROWDING.finding(
            "not measured",
            f"Whether one vector holds all that is read is not known: fewer than ten queries have what they ask for "
            f"within the {choice['length_limit']:,} tokens read.",
            "What whole documents lose may be cut off, or crowded out by the rest of the document.",
            MORE,
        )
    level = _level(row)
    bounds = interval(row["gain_low"], row["gain_high"], "+.3f")
    return CROWDING.finding(
        level,
        f"For {row['queries']:,} queries that ask for something that is read, whole documents score "
        f"{row['score'] - row['gain']:.3f}, and {row['gain']:+.3f}{bounds} by {SAID_WAYS[row['way']]} of "
        f"{row['size']:,} tokens.",
        *_words(
            level,
            "What else stands in a document crowds out what is asked for, although it is read: a longer limit would "
            "not help.",
            "Cut documents where the subject changes.",
        ),
        *_numbers(row),
    )


def _level(row: dict[str, Any]) -> Level:
    low, high = row["gain_low"], row["gain_high"]
    if low is None or (low <= 0 and high > UNSEEN):
        return "not measured"
    return "look" if low > 0 and row["gain"] > WORTH else "ok"


def _documents(choice: dict[str, Any]) -> str:
    if choice["is_composed"]:
        return f"A document composed of {choice['passages']} passages ({choice['tokens']:,.0f} tokens)"
    return f"A document of {choice['data_set']} ({choice['tokens']:,.0f} tokens)"


def _numbers(row: dict[str, Any]) -> tuple[float | None, ...]:
    return row["gain"], row["gain_low"], row["gain_high"]


def _words(level: Level, meaning: str, advice: str) -> tuple[str, str]:
    few = "There are too few queries to tell a gain from chance."
    return (few, MORE) if level == "not measured" else (meaning, advice)


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
        for mark in interval_marks(row["size"], row["score_low"], row["score_high"], series=WAYS[row["way"]])
    ]
    words = [
        Mark(row["size"], row["words_score"], series=WORDS, label=f"{WORDS}: {row['words_score']:.3f}")
        for row in cut
        if row["way"] == "best" and row["words_score"] is not None
    ]
    smallest = min((row["size"] for row in cut), default=1)
    panel = Panel(
        [
            Layer("rule", [Mark(y=row["score"], label="whole documents") for row in wholes], "soft", is_dashed=True),
            Layer("text", [Mark(smallest, row["score"], label="whole") for row in wholes], "soft", is_data=False),
            Layer("rule", bars, is_data=False),
            Layer("line", words),
            Layer("line", points),
        ],
        Axis("tokens of a piece", ",d", is_log=True),
        Axis("nDCG@10", ".2f", has_zero=True),
        width=520,
        height=220,
    )
    return Chart(
        "nDCG@10 by the size of pieces",
        "How well documents are found by the best of their pieces, and by the mean of these, with 95 % intervals. "
        "Dashed: whole documents, cut at the length limit. Where a line is above it, pieces find what one vector per "
        "document does not; the highest point of the best piece is the size to store.",
        [[panel]],
        TONES,
        more="embaudit query chunks",
    )
