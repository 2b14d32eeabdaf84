"""Finding about mitigation: the remedy that restores most of a task's score, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.declared.finding import Finding, Rows, interval, level_from, unless_ok
from embaudit.measures.impact.findings import scored_on
from embaudit.measures.mitigation.page import WORDS
from embaudit.measures.mitigation.settings import NONE, MitigationSettings
from embaudit.remedies.mitigation.rows import WAYS

# A remedy that costs more than this on clean texts is ruled out: two points, as for the impact of tokens.
PRICE = 0.02


def findings(rows: Rows, settings: MitigationSettings) -> Iterator[Finding]:
    """One, about retrieval if it was measured, otherwise about the first task."""
    tasks = [row for row in rows("mitigation") if row["poisoned"] is not None and row["clean"] is not None]
    if not tasks:
        return
    corpus, metric = min({(row["corpus"], row["metric"]) for row in tasks}, key=lambda of: (of[1] != "ndcg_10", of))
    own = [row for row in tasks if (row["corpus"], row["metric"]) == (corpus, metric)]
    untreated = next(row for row in own if row["remedy"] == NONE)
    tried = [row for row in own if row["remedy"] != NONE and row["poisoned_change"] is not None]
    affordable = [row for row in tried if row["clean_change"] >= -PRICE]
    # Both sides of a collection are encoded, but only its documents are ranked.
    task = scored_on(untreated, untreated["texts"] - untreated["items"], rows)
    lost = untreated["clean"] - untreated["poisoned"]
    if round(lost, 3) <= 0:
        yield Finding(
            "ok",
            f"Severe tokens in all texts do not lower {task} ({untreated['clean']:.3f}).",
            name=f"remedy_{metric}",
            value=0.0,
        )
        return
    begins = f"Severe tokens in all texts take {lost:.3f} off {task} ({untreated['clean']:.3f})"
    helping = [row for row in affordable if (row["poisoned_change_low"] or 0) > 0]
    level = level_from(lost, PRICE)
    if not helping:
        yield Finding(
            level,
            f"{begins}; "
            + (f"of {len(tried)} remedies tried none measurably" if tried else "no remedy could be tried that")
            + " restores any of it.",
            name=f"remedy_{metric}",
            value=0.0,
            **unless_ok(level, "Keep such tokens out of texts.", "embaudit screen FILE"),
        )
        return
    best = max(helping, key=lambda row: (row["poisoned_change"], row["remedy"]))
    low, high, remedy = best["poisoned_change_low"], best["poisoned_change_high"], best["remedy"]
    how = f"mitigate CHECKPOINT --tokens severe.json --how {remedy} --out DIR"
    yield Finding(
        level,
        f"{begins}; {WORDS[remedy]} restores {best['poisoned_change']:+.3f}{interval(low, high, '+.3f')}, and changes "
        f"the score on clean texts by {best['clean_change']:+.3f}.",
        name=f"remedy_{metric}",
        value=best["poisoned_change"],
        low=low,
        high=high,
        **unless_ok(
            level,
            "Most of this loss is avoidable.",
            f"embaudit {how if remedy in WAYS else 'filter CHECKPOINT --out severe.json'}",
        ),
    )
