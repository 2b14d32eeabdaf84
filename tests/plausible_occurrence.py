"""Rows of the occurrence tables: one corpus that holds severe tokens, one of them densely."""

from __future__ import annotations

from typing import Any

TOKENS = {4: (0.6, "strong", 5, 3), 5: (0.48, "moderate", 0, 0)}


def occurrence_rows() -> dict[str, list[dict[str, Any]]]:
    """The three tables."""
    return {
        "occurrence_corpus": [
            {
                **{"corpus": "wikipedia", "corpus_id": "w1", "texts": 40, "tokens": 1_000, "listed": 2},
                **{"unreachable": 1, "met": 1, "severe": 5, "severe_texts": 3, "severe_share": 3 / 40},
                **{"severe_share_low": 0.016, "severe_share_high": 0.204, "dense_texts": 1, **_movement(3)},
            }
        ],
        "occurrence": [
            {
                **{"corpus": "wikipedia", "token_id": token_id, "severity": severity, "loss": loss},
                **{"occurrences": occurrences, "texts": texts, "per_million": 1_000.0 * occurrences},
                **{"less_frequent": 0.9 if texts else 0.2, **_movement(texts)},
            }
            for token_id, (loss, severity, occurrences, texts) in TOKENS.items()
        ],
        "occurrence_text": [
            {
                **{"corpus": "wikipedia", "rank": 1, "position": 2, "tokens": 12, "severe": 3, "score": 0.15},
                **{"log10_p": -5.0, "worst_token_id": 4},
            }
        ],
    }


def _movement(texts: int) -> dict[str, Any]:
    if not texts:
        names = ("shift", "moved", "excess")
        nothing = dict.fromkeys(f"{name}{end}" for name in names for end in ("", "_low", "_high"))
        return {"removal_texts": 0, "ordinary_moved": None, **nothing}
    return {
        **{"removal_texts": texts, "ordinary_moved": 0.02},
        **{"shift": -0.01, "shift_low": -0.02, "shift_high": 0.0},
        **{"moved": 0.05, "moved_low": 0.04, "moved_high": 0.06},
        **{"excess": 0.03, "excess_low": 0.02, "excess_high": 0.04},
    }
