"""Mitigation on a page: remedies by loss, and by each task's score on clean and on poisoned texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table

# Queries for the section's data, by name, for one audit.
FACTS = {
    "mitigation_losses": ("SELECT * FROM mitigation_loss WHERE audit_id = ? ORDER BY remedy <> 'none', loss, remedy"),
    "mitigation": (
        "SELECT * FROM mitigation WHERE audit_id = ? "
        "ORDER BY corpus, metric, remedy <> 'none', poisoned DESC NULLS LAST, remedy"
    ),
}
SCORES = {
    "ndcg_10": "nDCG@10",
    "v_measure": "V-measure",
    "accuracy": "nearest-neighbour accuracy",
    "spearman": "Spearman's ρ with human scores",
}
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
