"""Rows of the impact tables: ordinary tokens and the worst by retention, in half and in all of the documents."""

from __future__ import annotations

from typing import Any

CLEAN = 0.75
ORDINARY = {"half": 0.745, "all": 0.748}
RETENTION = {"half": 0.684, "all": 0.727}
# One token each.
TOKENS = {"ordinary": (5, "river"), "retention": (4, "龸")}
DOCUMENTS, QUERIES = 1183, 30


def impact_rows() -> dict[str, list[dict[str, Any]]]:
    """The three tables."""
    cells = [(arm, share, score[share]) for share in ("half", "all") for arm, score in ARMS.items()]
    return {
        "impact": [*(_arm(*cell) for cell in reversed(cells)), _clean()],
        "impact_data_set": [
            {**_effect(arm, share, score), **OF_PAIRS, "data_set": name}
            for name in ("sts12-sts", "biosses-sts")
            for arm, share, score in reversed(cells)
        ],
        "impact_token": [_token(*cell) for cell in reversed(cells)],
        "impact_query": [
            {
                **{"corpus": "retrieval", "query": query, "arm": arm, "poisoned": share},
                **{"ndcg_10": gain, "mrr_10": gain, "recall_10": float(gain > 0)},
            }
            for arm, share, _ in (*cells, ("clean", "none", CLEAN))
            for query, gain in (("what does it do?", 1.0 if arm == "clean" else 0.5), ("and what does that?", 0.0))
        ],
    }


ARMS = {"ordinary": ORDINARY, "retention": RETENTION}
OF_PAIRS = {"corpus": "sts", "metric": "spearman", "items": QUERIES, "units": QUERIES - 2}


def _effect(arm: str, share: str, score: float) -> dict[str, Any]:
    values = {"change": score - CLEAN, "beyond": None if arm == "ordinary" else score - ORDINARY[share]}
    ends = {
        f"{name}{end}": None if value is None else value + side
        for name, value in values.items()
        for end, side in (("_low", -0.02), ("_high", 0.02))
    }
    return {
        **{"corpus": "retrieval", "metric": "ndcg_10", "arm": arm, "poisoned": share, "score": score},
        **values,
        **ends,
    }


def _arm(arm: str, share: str, score: float) -> dict[str, Any]:
    held = DOCUMENTS // 2 if share == "half" else DOCUMENTS
    return {
        **_effect(arm, share, score),
        **{"corpus_id": "w1", "tokens": 1, "items": QUERIES, "units": QUERIES - 2, "texts": DOCUMENTS},
        **{"held": held, "copies": 15.9, "shortened": 100},
    }


def _token(arm: str, share: str, score: float) -> dict[str, Any]:
    token_id, token = TOKENS[arm]
    return {**_effect(arm, share, score), "token_id": token_id, "token": token}


def _clean() -> dict[str, Any]:
    absent = dict.fromkeys(f"{name}{end}" for name in ("change", "beyond") for end in ("", "_low", "_high"))
    held = {"tokens": 0, "held": 0, "copies": 0.0, "shortened": 0}
    return {**_arm("ordinary", "all", CLEAN), "arm": "clean", "poisoned": "none", **absent, **held}
