"""Geometry on a page: one row per corpus, and the dimensions that contribute most to the cosine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table

# Queries for the section's data, by name, for one audit.
FACTS = {
    "geometry": "SELECT * FROM geometry WHERE audit_id = ? ORDER BY corpus",
    "geometry_dimensions": "SELECT * FROM geometry_dimension WHERE audit_id = ? ORDER BY corpus, rank",
}

CORPUS = {"corpus": Column("corpus"), "texts": Column("texts", ",")}
SPREAD = {
    **CORPUS,
    "mean_cosine": Column("mean cosine [95 %]", ".3f", ".3f"),
    "isoscore": Column("IsoScore*", ".3f"),
    "effective_rank": Column("effective rank", ".1f", ".1f"),
    "rankme": Column("RankMe", ".1f", ".1f"),
    "uniformity": Column("uniformity", ".2f"),
}
# Some without intervals, to keep the table narrow.
DIRECTIONS = {
    **CORPUS,
    "variance_1": Column("variance in 1", ".1%", ".1%", is_bar=True),
    "variance_3": Column("in 3", ".0%", ""),
    "variance_10": Column("in 10", ".0%", ""),
    "dimensions_for_half": Column("dimensions for half the cosine", ","),
    "hubness_skewness": Column("hubness skewness", ".2f"),
    "anti_hubs": Column("anti-hubs", ".1%", ""),
}
DIMENSIONS = {
    "dimension": Column("dimension", "d"),
    "share": Column("of the mean cosine", ".1%"),
    "contribution": Column("contribution", ".4f"),
    "mean": Column("mean", "+.3f"),
    "deviation": Column("deviation", ".3f"),
}
DIMENSIONS_SHOWN = 3


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Geometry", list(_parts(facts))) if facts["geometry"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    rows = facts["geometry"]
    dimension = ", ".join(sorted({f"{row['dimension']:,}" for row in rows}))
    for title, columns in ((f"Spread of the vectors in {dimension} dimensions", SPREAD), ("Directions", DIRECTIONS)):
        yield Table.of(columns, rows, title, more="embaudit query geometry")
    for row in rows:
        own = [one for one in facts["geometry_dimensions"] if one["corpus"] == row["corpus"]]
        if own:
            yield Table.of(
                DIMENSIONS,
                own,
                f"Dimensions that contribute most to the mean cosine, {row['corpus']}",
                brief=DIMENSIONS_SHOWN,
            )
