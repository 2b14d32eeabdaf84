"""Finding about meaning: which contrasts a checkpoint takes for the same sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from embaudit.declared.finding import Finding, Level, Rows, unless_ok
from embaudit.measures.meaning.settings import MeaningSettings

# What guessing gets right; an interval that is wholly below it is a preference for the contrast.
CHANCE = 0.5
# Similarity of words is wrong in all of them: two clear contrasts of six are all that a healthy checkpoint of six
# layers misses (all-MiniLM-L6-v2: roles 0, antonyms .26), one of three layers misses four (paraphrase-MiniLM-L3-v2).
SAID = {
    "negation": "its denial",
    "number": "another number",
    "roles": "exchanged roles",
    "entity": "another name",
    "tense": "another tense",
    "antonym": "the opposite word",
}


def findings(rows: Rows, settings: MeaningSettings) -> Iterator[Finding]:
    """One, about close rewordings: beside free ones, hardly any checkpoint gets a contrast right."""
    close = [row for row in rows("meaning") if row["rewording"] == "close"]
    if not close:
        return
    missed = sorted((row for row in close if row["nearer_high"] < CHANCE), key=_by_share)
    level: Level = "look" if missed else "ok"
    worst = min(close, key=_by_share)
    others = [row for row in close if row not in missed]
    said = (
        f"A close rewording of a sentence is further from it than almost the same words with {_named(missed)}"
        if missed
        else "A close rewording of a sentence is no further from it than almost the same words that say something else"
    )
    rest = f" Better: {_named(others)}." if missed and others else ""
    yield Finding(
        level,
        f"{said} ({worst['triples']} English sentences; in brackets how often it is nearer, 50 % is chance).{rest}",
        name="contrasts",
        value=worst["nearer"],
        low=worst["nearer_low"],
        high=worst["nearer_high"],
        **unless_ok(
            level,
            "What depends on such a difference (a cache of answers, deduplication, finding contradictions) goes wrong.",
            "Check such pairs with a cross-encoder or a rule: embaudit query meaning",
        ),
    )


def _by_share(row: dict[str, Any]) -> tuple[float, str]:
    return row["nearer"], row["contrast"]


def _named(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{SAID[row['contrast']]} ({row['nearer']:.0%})" for row in rows)
