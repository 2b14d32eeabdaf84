"""What the tables of mitigation show: a finding, and the section of a page.

The remedy that restores most of a task's score, and what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Rows, Rule, interval, number
from embaudit.measures.impact.findings import METRICS, scored_on
from embaudit.measures.mitigation import NONE, MitigationSettings
from embaudit.remedies.mitigation import WAYS

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


FACTS = {
    "mitigation_losses": ("SELECT * FROM mitigation_loss WHERE audit_id = ? ORDER BY remedy <> 'none', loss, remedy"),
    "mitigation": (
        "SELECT * FROM mitigation WHERE audit_id = ? "
        "ORDER BY corpus, metric, remedy <> 'none', poisoned DESC NULLS LAST, remedy"
    ),
}
SCORES = {name: METRICS[name] for name in ("ndcg_10", "v_measure", "accuracy", "spearman")}
WORDS = {
    "none": "none",
    "strip": "removal from texts (strip)",
    "prune": "removal from the tokenizer (prune)",
    "unk": "embedding of the unknown token (unk)",
    "mean": "mean embedding (mean)",
    "scale": "embedding scaled to ordinary length (scale)",
    "centring": "centring of vectors",
    "components": "removal of first components",
    "whitening": "whitening of vectors",
}
LOSSES = {
    **{"remedy": Column("remedy", words=WORDS), "loss": Column("loss [95 %]", ".3f", ".2f")},
    "change": Column("change [95 %]", "+.3f", "+.2f"),
    "lossy_share": Column("of vocabulary with loss ≥ 0.25 [95 %]", ".1%", ".1%"),
}
TASKS = {
    **{"remedy": Column("remedy", words=WORDS), "clean": Column("clean", ".3f")},
    "clean_change": Column("change, clean [95 %]", "+.3f", "+.3f"),
    "poisoned": Column("poisoned", ".3f"),
    "poisoned_change": Column("change, poisoned [95 %]", "+.3f", "+.3f"),
    "touched": Column("clean texts changed", ",d"),
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    is_there = facts["mitigation_losses"] or facts["mitigation"]
    return Section("What helps against sticky tokens", list(_parts(facts))) if is_there else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    if facts["mitigation_losses"]:
        yield _losses(facts["mitigation_losses"])
    rows = facts["mitigation"]
    for corpus, metric in dict.fromkeys((row["corpus"], row["metric"]) for row in rows):
        yield _scores([row for row in rows if (row["corpus"], row["metric"]) == (corpus, metric)])
    yield "Write a mitigated checkpoint: embaudit mitigate CHECKPOINT --tokens severe.json --how … --out DIR"


def _losses(losses: list[dict[str, Any]]) -> Table:
    first = losses[0]
    return Table.of(
        LOSSES,
        losses,
        f"Loss of the {first['tokens']:,} worst of {first['severe']:,} severe tokens, and of {first['vocabulary']:,} "
        f"random tokens of the vocabulary, with {first['copies']} copies",
        more="embaudit query mitigation-losses",
    )


def _scores(rows: list[dict[str, Any]]) -> Table:
    first = rows[0]
    return Table.of(
        TASKS,
        rows,
        f"{SCORES[first['metric']]}, {first['corpus']}: {first['items']:,} items, clean and with a severe token in "
        "every text",
        more="embaudit query mitigation",
    )
