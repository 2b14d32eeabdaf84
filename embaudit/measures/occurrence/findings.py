"""Findings about severe tokens in real texts: how common they are, what they do there, and where they are dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.finding import Finding, Level, Rows, interval
from embaudit.declared.rule import Rule
from embaudit.measures.occurrence import OccurrenceSettings

SEVERE_TEXTS = Rule(
    "severe_texts",
    "`occurrence_corpus.severe_share`",
    look=0.01,
    is_share=True,
    reason="one text in a hundred: a query with such a text among its first results is then nothing unusual",
)
REMOVAL = Rule(
    "removal",
    "`occurrence_corpus.excess`",
    look=0.01,
    look_if="interval above 0, from {look}",
    reason="a smaller move in the cosine hardly changes the order of two texts. `not measured` on a single text",
)
DENSE_TEXTS = Rule(
    "dense_texts",
    "`occurrence_corpus.dense_texts`",
    look_if="any",
    reason="what `embaudit screen` would flag if the rest of the corpus served as the ordinary text; no finding if "
    "there are none",
)


def findings(rows: Rows, settings: OccurrenceSettings) -> Iterator[Finding]:
    """At most three, from the audit's tables; none if no corpus has a text."""
    corpora = [row for row in rows("occurrence_corpus") if row["severe_share"] is not None]
    if not corpora:
        return
    yield _frequency(max(corpora, key=lambda row: (row["severe_share"], row["corpus"])))
    moved = [row for row in corpora if row["excess"] is not None]
    if moved:
        yield _removal(max(moved, key=lambda row: (row["excess"], row["corpus"])))
    dense = [row for row in corpora if row["dense_texts"]]
    if dense:
        yield _dense(max(dense, key=lambda row: (row["dense_texts"] / row["texts"], row["corpus"])))


def _frequency(row: dict[str, Any]) -> Finding:
    share, low, high = (row[f"severe_share{end}"] for end in ("", "_low", "_high"))
    return SEVERE_TEXTS.finding(
        SEVERE_TEXTS.level(share),
        f"{row['met']:,} of {row['listed']:,} severe tokens occur in {row['corpus']}: {row['severe_texts']:,} of "
        f"{row['texts']:,} texts contain one ({share:.2%}{interval(low, high, '.2%')}).",
        "They occur in ordinary texts of this kind, not only in broken ones.",
        "embaudit query occurrence",
        *(share, low, high),
    )


def _removal(row: dict[str, Any]) -> Finding:
    excess, low, high = (row[f"excess{end}"] for end in ("", "_low", "_high"))
    level: Level = "not measured" if low is None else REMOVAL.level(excess) if low > 0 else "ok"
    return REMOVAL.finding(
        level,
        f"Removing severe tokens from {row['removal_texts']:,} texts in {row['corpus']} that contain them moves a "
        f"cosine by {row['moved']:.3f} on average, {excess:+.3f}{interval(low, high, '+.3f')} compared with removing "
        "as many other tokens.",
        "One text says nothing about others." if low is None else "Without them, these texts would rank elsewhere.",
        "Audit with more such texts: --corpus NAME=FILE"
        if low is None
        else "embaudit filter CHECKPOINT --out severe.json",
        *(excess, low, high),
    )


def _dense(row: dict[str, Any]) -> Finding:
    texts = f"{row['dense_texts']:,} of {row['texts']:,} texts"
    return DENSE_TEXTS.finding(
        "look",
        f"In {texts} in {row['corpus']}, severe tokens are far denser than in the rest.",
        "Such texts are broken, poisoned, or in a script that the model barely knows.",
        "embaudit screen FILE --audit CHECKPOINT",
        float(row["dense_texts"]),
    )
