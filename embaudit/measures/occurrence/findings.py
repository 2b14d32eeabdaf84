"""Findings about severe tokens in real texts: how common they are, what they do there, and where they are dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.finding import Finding, Level, Rows, interval, unless_ok
from embaudit.measures.occurrence.settings import OccurrenceSettings

# One text in a hundred: then it is no exception for a query to have one among its first ten results.
COMMON = 0.01
# A smaller change of a cosine hardly ever changes the order of two texts.
MOVES = 0.01


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
    level: Level = "look" if share >= COMMON else "ok"
    return Finding(
        level,
        f"{row['met']:,} of {row['listed']:,} severe tokens occur in {row['corpus']}: {row['severe_texts']:,} of "
        f"{row['texts']:,} texts contain one ({share:.2%}{interval(low, high, '.2%')}).",
        name="severe_texts",
        value=share,
        low=low,
        high=high,
        **unless_ok(
            level,
            "They occur in ordinary texts of this kind, not only in broken ones.",
            "embaudit query occurrence",
        ),
    )


def _removal(row: dict[str, Any]) -> Finding:
    excess, low, high = (row[f"excess{end}"] for end in ("", "_low", "_high"))
    level: Level = "not measured" if low is None else "look" if low > 0 and excess >= MOVES else "ok"
    return Finding(
        level,
        f"Removing severe tokens from {row['removal_texts']:,} texts in {row['corpus']} that contain them moves a "
        f"cosine by {row['moved']:.3f} on average, {excess:+.3f}{interval(low, high, '+.3f')} compared with removing "
        "as many other tokens.",
        name="removal",
        value=excess,
        low=low,
        high=high,
        **unless_ok(
            level,
            "One text says nothing about others." if low is None else "Without them, these texts would rank elsewhere.",
            "Audit with more such texts: --corpus NAME=FILE"
            if low is None
            else "embaudit filter CHECKPOINT --out severe.json",
        ),
    )


def _dense(row: dict[str, Any]) -> Finding:
    texts = f"{row['dense_texts']:,} of {row['texts']:,} texts"
    return Finding(
        "look",
        f"In {texts} in {row['corpus']}, severe tokens are far denser than in the rest.",
        "Such texts are broken, poisoned, or in a script that the model barely knows.",
        "embaudit screen FILE --audit CHECKPOINT",
        name="dense_texts",
        value=float(row["dense_texts"]),
    )
