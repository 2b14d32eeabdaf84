"""Plausible rows of the question about temperatures: one task, two bins, a yes and a no."""

from __future__ import annotations

from typing import Any

SCOPE = {"corpus": "retrieval", "corpus_id": "w1", "reads": "limit", "max_tokens": 256}
# What no column is null in comes first: tests turn the first row around.
BINS = ((1, 0, 100), (0, None, None))
NONE, LOWER, BY_PART = 0.5, 0.55, 0.6


def tempscale_rows() -> dict[str, list[dict[str, Any]]]:
    """The three tables."""
    return {
        "tempscale": [_row(*arm, split, *one) for one in BINS for arm, split in _arms()],
        "tempscale_choice": [
            _choice(*BINS[0], "no", -0.01, "the interval of the difference does not lie above 0"),
            _choice(*BINS[1], "yes", 0.01, "the interval of the difference lies above 0"),
        ],
        "tempscale_search": [_search("layer", "yes", 0.01), _search("head", "no", -0.01)],
    }


def _search(part: str, answer: str, lowest: float) -> dict[str, Any]:
    return {
        "task": "retrieval",
        "part": part,
        "tau": 0.8,
        "taus": "0.8,0.9",
        "trials": 9,
        "recommendation": answer,
        "items": 30,
        "units": 20,
        "score_before": NONE,
        "score_single": LOWER,
        "score_after": BY_PART,
        "difference": BY_PART - NONE,
        "low": 0.02,
        "high": 0.2,
        "beyond": BY_PART - LOWER,
        "beyond_low": lowest,
        "beyond_high": 0.15,
        **SCOPE,
    }


def _arms() -> list[tuple[tuple[str, float], str]]:
    both = [(arm, split) for arm in (("temperature", 0.8), ("none", 1.0)) for split in ("report", "choose")]
    return [*both, *(((name, 1.0), "report") for name in ("chunk_average", "whitening", "centring"))]


def _row(arm: str, tau: float, split: str, number: int, low: int | None, high: int | None) -> dict[str, Any]:
    is_compared = arm != "none"
    has_interval = is_compared and split == "report"
    return {
        "task": "retrieval",
        "arm": arm,
        "tau": tau,
        "split": split,
        "bin": number,
        "bin_low": low,
        "bin_high": high,
        "items": 30,
        "units": 20,
        "score": LOWER if is_compared else NONE,
        "difference": LOWER - NONE if is_compared else None,
        "low": 0.01 if has_interval else None,
        "high": 0.09 if has_interval else None,
        **SCOPE,
    }


def _choice(number: int, low: int | None, high: int | None, answer: str, lowest: float, reason: str) -> dict[str, Any]:
    return {
        "task": "retrieval",
        "bin": number,
        "bin_low": low,
        "bin_high": high,
        "tau": 0.8,
        "recommendation": answer,
        "items": 30,
        "units": 20,
        "score_before": NONE,
        "score_after": LOWER,
        "difference": LOWER - NONE,
        "low": lowest,
        "high": 0.09,
        "reason": reason,
        **SCOPE,
    }
