"""Findings about impact: which tasks lose from sticky tokens in their texts, more than from ordinary tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.finding import MAX_FINDINGS, Finding, Rows, interval, level_from, unless_ok
from embaudit.measures.impact.settings import ImpactSettings

TASKS = {
    "ndcg_10": ("nDCG@10 on {corpus}", "documents"),
    "v_measure": ("the V-measure of clustering on {corpus}", "texts"),
    "accuracy": ("nearest-neighbour accuracy on {corpus}", "texts"),
    "spearman": ("Spearman's ρ on {corpus}", "sentences"),
}
# Two points are the difference between good checkpoints; five are a generation of checkpoints.
LOOK, PROBLEM = 0.02, 0.05
COMPARED_WITH = ("clean", "ordinary")
TOO_FEW = "There are too few items for an interval.", "Use more of them: --documents all --queries all"
TAKEN_AWAY = (
    "Broken extraction, or anyone who can put such tokens into your texts, costs you that much.",
    "embaudit screen FILE",
)
CELL = ("corpus", "metric", "arm", "poisoned")


def findings(rows: Rows, settings: ImpactSettings) -> Iterator[Finding]:
    """The worst arm of each task, largest loss first."""
    tokens = rows("impact_token")
    compared = [row for row in rows("impact") if row["arm"] not in COMPARED_WITH and row["beyond"] is not None]
    data_sets = rows("impact_data_set")
    worst = []
    for metric in TASKS:
        arms = [row for row in compared if row["metric"] == metric]
        if arms:
            worst.append(min(arms, key=lambda row: (row["beyond"], row["arm"], row["poisoned"])))
    for row in sorted(worst, key=lambda row: (row["beyond"], row["metric"]))[:MAX_FINDINGS]:
        of = len({one["data_set"] for one in data_sets if all(one[key] == row[key] for key in CELL)})
        yield _finding(row, [one for one in tokens if all(one[key] == row[key] for key in CELL)], of)


def _finding(row: dict[str, Any], tokens: list[dict[str, Any]], data_sets: int) -> Finding:
    task, texts = (words.format(corpus=row["corpus"]) for words in TASKS[row["metric"]])
    if data_sets:
        task = f"{task} (mean of {data_sets} data sets)"
    low, high = row["beyond_low"], row["beyond_high"]
    clean = row["score"] - row["change"]
    by_loss = sorted(tokens, key=lambda one: (one["change"], one["token_id"]))
    named = ", ".join(repr(one["token"]) for one in by_loss)
    share = "half of the" if row["poisoned"] == "half" else "all"
    # Only if the interval excludes 0.
    level = "not measured" if high is None else level_from(-row["beyond"] if high < 0 else 0.0, LOOK, PROBLEM)
    return Finding(
        level,
        f"With {named} in {share} {texts}, {task} is {row['score']:.3f} instead of {clean:.3f}: "
        f"{row['beyond']:+.3f}{interval(low, high, '+.3f')} compared with ordinary tokens.",
        name=f"loss_{row['metric']}",
        value=row["beyond"],
        low=low,
        high=high,
        **unless_ok(level, *(TOO_FEW if level == "not measured" else TAKEN_AWAY)),
    )
