"""Finding about mitigation: the remedy that restores most of a task's score, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.declared.finding import Finding, Rows, interval
from embaudit.declared.rule import Rule, number
from embaudit.measures.impact.findings import scored_on
from embaudit.measures.mitigation import NONE, MitigationSettings
from embaudit.measures.mitigation.page import WORDS
from embaudit.remedies.mitigation.rows import WAYS

# What severe tokens take, and the most that a remedy may cost on clean texts: two points, as for the impact of tokens.
PRICE = 0.02
REMEDY = Rule(
    "remedy_{task}",
    "`mitigation.poisoned_change` of the remedy that recovers most, on retrieval or, without a collection, the first "
    "task; 0 if none does, or if severe tokens do not lower the score",
    look=PRICE,
    look_if="severe tokens take {look} or more, whether a remedy helps or not",
    reason=f"only remedies whose interval is above 0 and that cost clean texts no more than {number(PRICE)}: two "
    "points, as for the impact",
)


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
        unharmed = f"Severe tokens in all texts do not lower {task} ({untreated['clean']:.3f})."
        yield REMEDY.finding("ok", unharmed, value=0.0, task=metric)
        return
    begins = f"Severe tokens in all texts take {lost:.3f} off {task} ({untreated['clean']:.3f})"
    helping = [row for row in affordable if (row["poisoned_change_low"] or 0) > 0]
    level = REMEDY.level(lost)
    if not helping:
        yield REMEDY.finding(
            level,
            f"{begins}; "
            + (f"of {len(tried)} remedies tried none measurably" if tried else "no remedy could be tried that")
            + " restores any of it.",
            "Keep such tokens out of texts.",
            "embaudit screen FILE",
            0.0,
            task=metric,
        )
        return
    best = max(helping, key=lambda row: (row["poisoned_change"], row["remedy"]))
    low, high, remedy = best["poisoned_change_low"], best["poisoned_change_high"], best["remedy"]
    how = f"mitigate CHECKPOINT --tokens severe.json --how {remedy} --out DIR"
    yield REMEDY.finding(
        level,
        f"{begins}; {WORDS[remedy]} restores {best['poisoned_change']:+.3f}{interval(low, high, '+.3f')}, and changes "
        f"the score on clean texts by {best['clean_change']:+.3f}.",
        "Most of this loss is avoidable.",
        f"embaudit {how if remedy in WAYS else 'filter CHECKPOINT --out severe.json'}",
        *(best["poisoned_change"], low, high),
        task=metric,
    )
