"""Findings about chunks: whether documents are better cut, and whether what is read crowds a vector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.finding import Finding, Level, Rows, interval
from embaudit.declared.rule import Rule, number
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
WAYS = {"best": "the best of its pieces", "mean": "the mean of its pieces"}
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
        f"{WAYS[choice['way']]} of {choice['size']:,} tokens ({choice['gain']:+.3f}{bounds}, held out)."
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
        f"{row['score'] - row['gain']:.3f}, and {row['gain']:+.3f}{bounds} by {WAYS[row['way']]} of "
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
