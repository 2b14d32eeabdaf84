"""What the tables of impact show: findings, and the section of a page.

Which tasks lose from sticky tokens in their texts, more than from ordinary tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import MAX_FINDINGS, Finding, Level, Rows, Rule, interval
from embaudit.measures.impact import ImpactSettings

TASKS = {
    "ndcg_10": ("nDCG@10", "documents"),
    "v_measure": ("the V-measure of clustering", "texts"),
    "accuracy": ("nearest-neighbour accuracy", "texts"),
    "spearman": ("Spearman's ρ", "sentences"),
}
# What a part of a collection does to a score, if it does.
OF_A_PART = {
    "ndcg_10": "among fewer documents the relevant ones rank higher, and so does the score: --documents all reads all",
    "accuracy": "with more texts to learn from accuracy is higher: --texts N reads more",
}
LOSS = Rule(
    "loss_{task}",
    f"`impact.beyond` of the worst arm, for each task ({', '.join(f'`{task}`' for task in TASKS)})",
    look=-0.02,
    problem=-0.05,
    worse="lower",
    reason="two points is the difference that choosing among good checkpoints makes; five points is a generation of "
    "checkpoints. Only if the interval is below 0; `not measured` without an interval. The sentence names the data "
    "set and how much of it was read, because a score on a part of a collection is another score: among 1 200 of "
    "SciFact's 5 183 documents, nDCG@10 is .78, among all .65",
)
COMPARED_WITH = ("clean", "ordinary")
TOO_FEW = "There are too few items for an interval.", "Use more of them: `--documents all --queries all`"
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
        task = scored_on(row, row["texts"], rows, of)
        yield _finding(row, [one for one in tokens if all(one[key] == row[key] for key in CELL)], task)


def scored_on(row: dict[str, Any], documents: int, rows: Rows, data_sets: int = 0) -> str:
    """The score of a row in words: of which task, on which data, on how much of it, and what the rest would do.

    Args:
        row: of a table with corpus, metric and items.
        documents: of a collection, those that were ranked.
        data_sets: number of data sets that the score is the mean of; 0: there is only one.
    """
    metric, corpus = row["metric"], row["corpus"]
    corpora = {one["name"]: one for one in rows("corpus")}
    score = TASKS[metric][0] + (f" (mean of {data_sets} data sets)" if data_sets else "")
    if corpus not in corpora:
        return f"{score} on {corpus}"
    used = {"documents": (documents, corpus), "queries": (row["items"], f"{corpus}-queries")}
    if metric != "ndcg_10":
        used = {"pairs" if metric == "spearman" else "texts": (row["items"], corpus)}
    parts, is_part = [], False
    for kind, (count, name) in used.items():
        total = corpora[name]["kept"] + corpora[name]["undrawn"] if name in corpora else count
        is_part |= count < total
        parts.append(f"{count:,} of its {total:,} {kind}" if count < total else f"all {total:,} {kind}")
    effect = f"; {OF_A_PART[metric]}" if is_part and metric in OF_A_PART else ""
    return f"{score} on {data_name(corpora[corpus])} ({', '.join(parts)}{effect})"


def data_name(corpus: dict[str, Any]) -> str:
    """The data set of a corpus: the last part of its path, its repository on the hub, or the embedded sample."""
    source = str(corpus["source"]).rstrip("/")
    if source == "sample":
        return f"the embedded sample of {corpus['name']}"
    return source if source.startswith("hub:") else source.replace("\\", "/").rpartition("/")[2]


def _finding(row: dict[str, Any], tokens: list[dict[str, Any]], task: str) -> Finding:
    texts = TASKS[row["metric"]][1]
    low, high = row["beyond_low"], row["beyond_high"]
    clean = row["score"] - row["change"]
    by_loss = sorted(tokens, key=lambda one: (one["change"], one["token_id"]))
    named = ", ".join(repr(one["token"]) for one in by_loss)
    share = "half of the" if row["poisoned"] == "half" else "all"
    level: Level = "not measured" if high is None else LOSS.level(row["beyond"]) if high < 0 else "ok"
    return LOSS.finding(
        level,
        f"With {named} in {share} {texts}, {task} is {row['score']:.3f} instead of {clean:.3f}: "
        f"{row['beyond']:+.3f}{interval(low, high, '+.3f')} compared with ordinary tokens.",
        *(TOO_FEW if level == "not measured" else TAKEN_AWAY),
        *(row["beyond"], low, high),
        task=row["metric"],
    )


FACTS = {
    "impact": (
        "SELECT impact.*, source, kept + undrawn AS whole FROM impact LEFT JOIN corpus USING (corpus_id) "
        "WHERE audit_id = ? "
        "ORDER BY corpus, metric, poisoned <> 'none', poisoned, arm <> 'ordinary', arm"
    ),
    "impact_data_sets": (
        "SELECT * FROM impact_data_set WHERE audit_id = ? "
        "ORDER BY corpus, metric, poisoned <> 'none', poisoned, arm <> 'ordinary', arm, data_set"
    ),
    "impact_tokens": (
        "SELECT arm, any_value(token ORDER BY token_id) AS token, token_id, min(change) AS worst FROM impact_token "
        "WHERE audit_id = ? GROUP BY arm, token_id ORDER BY arm <> 'ordinary', arm, worst, token_id"
    ),
}
METRICS = {
    "ndcg_10": "nDCG@10",
    "mrr_10": "MRR@10",
    "recall_10": "recall@10",
    "v_measure": "V-measure",
    "accuracy": "nearest-neighbour accuracy",
    "spearman": "Spearman's ρ with human scores",
}
ARMS = {
    "clean": "clean",
    "ordinary": "ordinary tokens",
    "retention": "worst by retention",
    "definition": "worst by definition",
    "reference": "worst by the published code",
    "given": "given tokens",
}
# The others say much the same about a ranking.
SHOWN = ("ndcg_10", "v_measure", "accuracy", "spearman")
SCORES = {
    **{"arm": Column("tokens", words=ARMS), "poisoned": Column("in texts"), "score": Column("score", ".3f")},
    "change": Column("change [95 %]", "+.3f", "+.3f"),
}
DATA_SET_COLUMNS = {"data_set": Column("data set"), "items": Column("pairs", ",d"), **SCORES}
COLUMNS = {**SCORES, "beyond": Column("compared with ordinary tokens [95 %]", "+.3f", "+.3f")}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Impact of sticky tokens", list(_parts(facts))) if facts["impact"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    rows = facts["impact"]
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        for metric in SHOWN:
            own = [row for row in rows if row["corpus"] == corpus and row["metric"] == metric]
            if own:
                data_sets = [
                    row for row in facts["impact_data_sets"] if (row["corpus"], row["metric"]) == (corpus, metric)
                ]
                names = {row["data_set"] for row in data_sets}
                yield _table(corpus, metric, own, len(names))
                if names:
                    yield _by_data_set(corpus, metric, data_sets, len(names))
    for arm in dict.fromkeys(row["arm"] for row in facts["impact_tokens"]):
        tokens = ", ".join(repr(row["token"]) for row in facts["impact_tokens"] if row["arm"] == arm)
        yield f"{ARMS[arm].capitalize()}: {tokens}."
    yield "By token: embaudit query impact-tokens   By query: embaudit query impact-queries"


def _by_data_set(corpus: str, metric: str, rows: list[dict[str, Any]], count: int) -> Table:
    return Table.of(
        DATA_SET_COLUMNS,
        rows,
        f"{METRICS[metric]}, {corpus}: each of {count} data sets",
        # Clean scores come first.
        brief=count,
        more="embaudit query impact-data-sets",
    )


def _table(corpus: str, metric: str, rows: list[dict[str, Any]], data_sets: int) -> Table:
    held = next(row for row in rows if row["poisoned"] == "all")
    copies = f"{held['copies']:.1f} copies per text on average"
    mean = f", mean of {data_sets} data sets" if data_sets else ""
    return Table.of(
        COLUMNS,
        rows,
        f"{METRICS[metric]}, {corpus}{mean}: {held['items']:,} items, {held['texts']:,} texts, {copies}{_part(held)}",
        more="embaudit query impact",
    )


def _part(row: dict[str, Any]) -> str:
    """Which data, and how much of it, if the corpus is in this warehouse."""
    if row["source"] is None:
        return ""
    used = row["texts"] if row["metric"] == "ndcg_10" else row["items"]
    name = data_name({"name": row["corpus"], "source": row["source"]})
    return f"; from {name}" + (f", {used:,} of {row['whole']:,}" if used < row["whole"] else "")
