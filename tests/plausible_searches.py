"""Rows of what is measured by searching a judged collection, and of triples of sentences."""

from __future__ import annotations

from declared_rows import Table, row_of, rows_of

SAMPLE = {"data_set": "sample", "documents": 270}


def surface_rows() -> dict[str, Table]:
    """A change that the tokenizer does not see, one that costs something, and one that no query has."""
    nothing = dict.fromkeys(
        (
            *("same_tokens", "unwritten", "moved", "overlap", "ndcg", "ndcg_change"),
            *("words_overlap", "words_ndcg_change"),
        )
    )
    counts = {"queries": 90, "unchanged": 0, "units": 90}
    seen = {"same_tokens": 0.0, "unwritten": 0.0, "moved": 0.15, "ndcg": 0.87, "words_ndcg_change": -0.04}
    unseen = {"same_tokens": 1.0, "unwritten": 0.0, "moved": 0.0, "ndcg": 0.87, "words_ndcg_change": 0.0}
    none = {"queries": 0, "unchanged": 90, "units": 0}
    return {
        "surface": [
            row_of(
                "surface", change="lower case", kind="case", overlap=1.0, ndcg_change=0.0, **SAMPLE, **counts, **unseen
            ),
            row_of("surface", change="swapped letters", overlap=0.76, ndcg_change=-0.05, **SAMPLE, **counts, **seen),
            row_of("surface", change="other normal form", **SAMPLE, **none, **nothing),
        ]
    }


def attractor_rows() -> dict[str, Table]:
    """Two kinds of texts without content, one of which comes up, and two hubs."""
    summary = {"queries": 90, "texts": 54, "skew": 1.1, "words_skew": 2.3, "random_skew": 0.2}
    return {
        "attractor": [
            row_of(
                "attractor", kind="error pages", queries=90, above=0.1, met=0.3, worst_text="404", data_set="sample"
            ),
            row_of("attractor", kind="tables of numbers", queries=90, above=0.0, met=0.0, data_set="sample"),
        ],
        "hub": rows_of("hub", "rank text occurrences", (1, "first", 37), (2, "second", 30), data_set="sample"),
        "attractor_summary": [
            row_of("attractor_summary", **SAMPLE, **summary, top_share=0.1, words_top_share=0.2, clean=0.9)
        ],
    }


def meaning_rows() -> dict[str, Table]:
    """Two contrasts, each beside both kinds of rewording; and searches of four kinds."""
    return {
        "meaning": [
            row_of("meaning", contrast=contrast, rewording=rewording, nearer=nearer, words_nearer=0.0)
            for contrast, shares in {"negation": (0.9, 0.05), "roles": (0.0, 0.0)}.items()
            for rewording, nearer in zip(("close", "free"), shares, strict=True)
        ],
        "meaning_search": rows_of(
            *("meaning_search", "kind found words_found"),
            *(("magnitude", 0.75, 0.4), ("unit", 0.0625, 0.0), ("version", 1.0, 1.0), ("exclusion", 0.125, 0.0)),
            searches=16,
        ),
    }
