"""What the occurrence of severe tokens comes to: whether texts hold them, lose by them, or are full of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.finding import Finding, Level, Rows, interval, unless_ok
from embaudit.measures.occurrence.settings import OccurrenceSettings

# One text in a hundred: a query that has it among its first ten results is no exception.
COMMON = 0.01
# A cosine that moves by less hardly changes the order of two texts.
MOVES = 0.01


def findings(rows: Rows, settings: OccurrenceSettings) -> Iterator[Finding]:
    """At most three, from the audit's tables; none where no corpus has a text."""
    corpora = [row for row in rows("occurrence_corpus") if row["severe_share"] is not None]
    if not corpora:
        return
    yield _how_common(max(corpora, key=lambda row: (row["severe_share"], row["corpus"])))
    moved = [row for row in corpora if row["excess"] is not None]
    if moved:
        yield _what_it_does(max(moved, key=lambda row: (row["excess"], row["corpus"])))
    dense = [row for row in corpora if row["dense_texts"]]
    if dense:
        yield _dense(max(dense, key=lambda row: (row["dense_texts"] / row["texts"], row["corpus"])))


def _how_common(row: dict[str, Any]) -> Finding:
    share, low, high = (row[f"severe_share{end}"] for end in ("", "_low", "_high"))
    level: Level = "look" if share >= COMMON else "ok"
    return Finding(
        level,
        f"{row['met']:,} of {row['listed']:,} severe tokens occur in {row['corpus']}: {row['severe_texts']:,} of "
        f"{row['texts']:,} texts hold one ({share:.2%}{interval(low, high, '.2%')}).",
        name="severe_texts",
        value=share,
        low=low,
        high=high,
        **unless_ok(
            level,
            "They are part of ordinary texts of this kind, and not only of broken ones.",
            "embaudit query occurrence",
        ),
    )


def _what_it_does(row: dict[str, Any]) -> Finding:
    excess, low, high = (row[f"excess{end}"] for end in ("", "_low", "_high"))
    level: Level = "not measured" if low is None else "look" if low > 0 and excess >= MOVES else "ok"
    return Finding(
        level,
        f"Taken out of {row['removal_texts']:,} texts of {row['corpus']} that hold them, severe tokens move a cosine "
        f"by {row['moved']:.3f} on average, {excess:+.3f}{interval(low, high, '+.3f')} against as many other tokens.",
        name="removal",
        value=excess,
        low=low,
        high=high,
        **unless_ok(
            level,
            "One text says nothing of others." if low is None else "Without them these texts would be found otherwise.",
            "" if low is None else "embaudit filter CHECKPOINT --out severe.json",
        ),
    )


def _dense(row: dict[str, Any]) -> Finding:
    texts = f"{row['dense_texts']:,} of {row['texts']:,} texts"
    return Finding(
        "look",
        f"In {texts} of {row['corpus']} severe tokens are far denser than in the others.",
        "Such texts are broken, poisoned, or in a script that the model hardly knows.",
        "embaudit screen FILE --audit CHECKPOINT",
        name="dense_texts",
        value=float(row["dense_texts"]),
    )
