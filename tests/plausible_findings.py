"""Findings of one audit: each level once, with an interval, with a value alone and with neither."""

from __future__ import annotations

from typing import Any


def finding_rows() -> list[dict[str, Any]]:
    """Three rows, in the order in which an audit makes them."""
    return [
        {
            **{"measure": "sticky", "name": "worst_token", "place": 0, "level": "look"},
            **{"sentence": "8 copies of '龸' take away 62% [55%, 69%].", "meaning": "Such texts look alike."},
            **{"advice": None, "value": 0.62, "low": 0.55, "high": 0.69},
        },
        {
            **{"measure": "audit", "name": "real_corpora", "place": 1, "level": "not measured"},
            **{"sentence": "How it does on your texts: sts came from the embedded sample.", "meaning": None},
            **{"advice": "embaudit audit CHECKPOINT --corpus sts=FILE", "value": None, "low": None, "high": None},
        },
        {
            **{"measure": "length", "name": "long_pairs", "place": 2, "level": "problem"},
            **{"sentence": "80% of the pairs of long texts score higher.", "meaning": None},
            **{"advice": "embaudit query length-pairs", "value": 0.8, "low": None, "high": None},
        },
    ]
