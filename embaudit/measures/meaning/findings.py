"""Finding about meaning: which contrasts a checkpoint takes for the same sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from embaudit.declared.finding import Finding, Rows
from embaudit.declared.rule import Rule
from embaudit.measures.meaning import MeaningSettings

CONTRASTS = Rule(
    "contrasts",
    "`meaning.nearer` of close rewordings",
    look=0.5,
    worse="lower",
    look_if="interval below {look} for any kind of contrast",
    reason="{look} is chance: the contrast is then preferred. all-MiniLM-L6-v2 prefers exchanged roles (0 of 46 "
    "right) and the opposite word (.26), paraphrase-MiniLM-L3-v2 also another tense and another number; TF-IDF is "
    "wrong in every triple",
)
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
    missed = sorted((row for row in close if row["nearer_high"] < CONTRASTS.look), key=_by_share)
    worst = min(close, key=_by_share)
    others = [row for row in close if row not in missed]
    said = (
        f"A close rewording of a sentence is further from it than almost the same words with {_named(missed)}"
        if missed
        else "A close rewording of a sentence is no further from it than almost the same words that say something else"
    )
    rest = f" Better: {_named(others)}." if missed and others else ""
    yield CONTRASTS.finding(
        "look" if missed else "ok",
        f"{said} ({worst['triples']} English sentences; in brackets how often it is nearer, 50 % is chance).{rest}",
        "What depends on such a difference (a cache of answers, deduplication, finding contradictions) goes wrong.",
        "Check such pairs with a cross-encoder or a rule: embaudit query meaning",
        *(worst[f"nearer{end}"] for end in ("", "_low", "_high")),
    )


def _by_share(row: dict[str, Any]) -> tuple[float, str]:
    return row["nearer"], row["contrast"]


def _named(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{SAID[row['contrast']]} ({row['nearer']:.0%})" for row in rows)
