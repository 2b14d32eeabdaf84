"""Rows of the geometry tables: two corpora, one of them dominated by a dimension, one too small for hubs."""

from __future__ import annotations

from typing import Any

VALUES = {
    "mean_cosine": 0.4,
    "isoscore": 0.2,
    "effective_rank": 12.0,
    "rankme": 9.0,
    "uniformity": -2.0,
    "variance_1": 0.3,
    "variance_3": 0.5,
    "variance_10": 0.8,
    "top_dimension_share": 0.6,
    "hubness_skewness": 1.5,
    "anti_hubs": 0.1,
}
HUBS = ("hubness_skewness", "anti_hubs")


def geometry_rows() -> dict[str, list[dict[str, Any]]]:
    """The two tables."""
    return {
        "geometry": [_corpus("wikipedia", 40, VALUES), _corpus("msmarco", 15, {**VALUES, **dict.fromkeys(HUBS)})],
        "geometry_dimension": [
            {
                "corpus": corpus,
                "rank": rank,
                "dimension": dimension,
                "contribution": share * VALUES["mean_cosine"],
                "share": share,
                "mean": share**0.5,
                "deviation": 0.05,
            }
            for corpus in ("wikipedia", "msmarco")
            for rank, (dimension, share) in enumerate(((17, 0.6), (3, 0.2), (30, 0.1)), start=1)
        ],
    }


def _corpus(corpus: str, texts: int, values: dict[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, value in values.items():
        low, high = (None, None) if value is None else (value - 0.05, value + 0.05)
        figures |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return {
        "corpus": corpus,
        "corpus_id": "w1",
        "texts": texts,
        "truncated": 1,
        "dimension": 32,
        "shrinkage": 0.05,
        "dimensions_for_half": 1,
        "neighbours": 10,
        **figures,
    }
