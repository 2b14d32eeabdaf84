"""Attractors on a page: texts without content among the results, and the documents that come up most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table

# Queries for the section's data, by name, for one audit.
FACTS = {
    "attractors": "SELECT * FROM attractor WHERE audit_id = ? ORDER BY above DESC, met DESC, kind",
    "attractor_hubs": "SELECT * FROM hub WHERE audit_id = ? ORDER BY rank",
    "attractor_summary": "SELECT * FROM attractor_summary WHERE audit_id = ? ORDER BY data_set",
}
KINDS = {
    **{"kind": Column("texts without content"), "texts": Column("texts", ",")},
    "met": Column("among the ten best [95 %]", ".0%", ".0%", is_bar=True),
    "chance": Column("at random", ".0%"),
    "words_met": Column("by TF-IDF", ".0%"),
    "above": Column("above all relevant [95 %]", ".0%", ".0%"),
    "words_above": Column("above all, by TF-IDF", ".0%"),
    "worst_text": Column("worst of them", is_prose=True, is_detail=True),
}
HUBS = {
    "text": Column("document", is_prose=True),
    "occurrences": Column("occurrences", ","),
    "words_occurrences": Column("by TF-IDF", ","),
    "met": Column("of the queries", ".0%"),
    "relevant": Column("relevant for", ","),
    "above_relevant": Column("above relevant ones for", ","),
    "words": Column("words", ","),
}
HUBS_SHOWN = 5
SHOWN = 60
Row = Mapping[str, Any]


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Attractors", list(_parts(facts))) if facts["attractors"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    first = facts["attractors"][0]
    yield Table.of(
        KINDS,
        [{**row, "worst_text": _short(row["worst_text"])} for row in facts["attractors"]],
        f"Queries of {first['data_set']} that meet texts without content",
        headline=HUBS_SHOWN,
        more="embaudit query attractors",
    )
    for row in facts["attractor_summary"]:
        others = {"TF-IDF": row["words_skew"], "random vectors": row["random_skew"]}
        beside = ", ".join(f"{value:.2f} for {name}" for name, value in others.items() if value is not None)
        if row["skew"] is not None:
            yield f"Skewness of the documents' occurrences: {row['skew']:.2f}{f'; {beside}' if beside else ''}."
    if facts["attractor_hubs"]:
        yield Table.of(
            HUBS,
            [{**row, "text": _short(row["text"])} for row in facts["attractor_hubs"]],
            "Documents that are among the ten nearest of most documents and queries",
            brief=HUBS_SHOWN,
            more="embaudit query hubs",
        )


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= SHOWN else f"{text[:SHOWN].rstrip()} …"
