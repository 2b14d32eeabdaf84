"""Impact on a page: a table for each corpus and score, with each arm compared with ordinary tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table
from embaudit.measures.impact.findings import data_name

# Queries for the section's data, by name, for one audit.
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
