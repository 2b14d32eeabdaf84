"""Surface on a page: what each change of their form does to the queries, beside TF-IDF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Section, Table

# Queries for the section's data, by name, for one audit.
FACTS = {"surface": "SELECT * FROM surface WHERE audit_id = ? ORDER BY overlap NULLS LAST, change"}
COLUMNS = {
    "change": Column("change"),
    "queries": Column("queries", ","),
    "same_tokens": Column("same tokens", ".0%", is_detail=True),
    "unwritten": Column("cannot be written", ".0%"),
    "moved": Column("1 − cosine", ".3f", is_detail=True),
    "overlap": Column("of the ten best stay [95 %]", ".0%", ".0%", is_bar=True),
    "words_overlap": Column("by TF-IDF", ".0%"),
    "ndcg_change": Column("change of nDCG@10 [95 %]", "+.3f", "+.2f"),
    "words_ndcg_change": Column("of TF-IDF's", "+.3f"),
}
HEADLINE = 5
Row = Mapping[str, Any]


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    rows = facts["surface"]
    if not rows:
        return None
    first = rows[0]
    table = Table.of(
        COLUMNS,
        rows,
        f"Queries of {first['data_set']} written otherwise, over {first['documents']:,} documents",
        headline=HEADLINE,
        more="embaudit query surface",
    )
    return Section("Surface", [table, _chart([row for row in rows if row["overlap"] is not None])])


def _chart(rows: Sequence[Row]) -> Chart:
    bounds = [
        Mark(x=row["overlap_low"], x2=row["overlap_high"], y=row["change"], y2=row["change"])
        for row in rows
        if row["overlap_low"] is not None
    ]
    points = [
        Mark(row["overlap"], row["change"], label=f"{row['change']}: {row['overlap']:.0%} of {row['queries']} queries")
        for row in rows
    ]
    words = [
        Mark(row["words_overlap"], row["change"], label=f"{row['change']}, TF-IDF: {row['words_overlap']:.0%}")
        for row in rows
        if row["words_overlap"] is not None
    ]
    panel = Panel(
        [Layer("rule", bounds, is_data=False), Layer("point", words, tone="soft"), Layer("point", points)],
        Axis("of the ten best documents stay", ".0%", (0, 1)),
        Axis(categories=[row["change"] for row in rows]),
        # Less than a page's width: the names stand beside it.
        width=540,
    )
    return Chart(
        "What stays among the ten best documents",
        "One row per change of the queries' form, with its 95 % interval; grey: ranking by TF-IDF. At the right "
        "nothing changes; far left of the grey point, a query's form counts for more than its words do.",
        [[panel]],
        more="embaudit query surface",
    )
