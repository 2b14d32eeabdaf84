"""Rows of the length tables, small enough to check by hand: three bins, four texts, one layer of two heads."""

from __future__ import annotations

from typing import Any

# Mean cosine by condition and bin: (low, high, texts, mean).
CURVES: dict[str, tuple[tuple[int, int, int, float | None], ...]] = {
    "natural": ((0, 20, 4, 0.1), (20, 40, 1, None), (40, 60, 4, 0.3)),
    "truncation": ((0, 20, 4, 0.1), (20, 40, 4, 0.12), (40, 60, 4, 0.2)),
    "windows": ((0, 20, 4, 0.2), (20, 40, 4, 0.3), (40, 60, 4, 0.4)),
    "input_embeddings": ((0, 20, 4, 0.7), (20, 40, 4, 0.72), (40, 60, 4, 0.75)),
}
# By head: sigma_a and ||PA||_F.
SIGMAS = ((0.8, 1.0), (1.4, 1.5))


def length_rows() -> dict[str, list[dict[str, Any]]]:
    """The six tables."""
    return {
        "length_bin": [
            {
                "corpus": "wikipedia",
                "condition": condition,
                "low": low,
                "high": high,
                "length": (low + high) / 2,
                "beyond_limit": low >= 40,
                "texts": texts,
                "cosine_mean": mean,
                "cosine_low": None if mean is None else mean - 0.05,
                "cosine_high": None if mean is None else mean + 0.05,
            }
            for condition, bins in CURVES.items()
            for low, high, texts, mean in bins
        ],
        # The last condition first: its shares are all there.
        "length_rise": [_rise(condition) for condition in reversed(CURVES)],
        "length_summary": [
            {
                "corpus": "wikipedia",
                "corpus_id": "w1",
                "texts": 9,
                "empty": 0,
                "read_limit": 60,
                "configured_limit": 40,
                "position_limit": 60,
                "beyond_configured": 4,
                "beyond_read": 1,
                "control_texts": 4,
                "window": 16,
                "tokens_mean": 30.0,
                "tokens_median": 28.0,
                "tokens_max": 70,
                "neighbours": 3,
                "is_labelled": True,
                "hubness_spearman": 0.4,
                "hubness_p": 0.03,
                "neighbour_length_ratio": 1.2,
                "short_neighbour_length_ratio": 1.1,
                "rank_spearman": -0.3,
                "knn_accuracy": 0.75,
                "wrong_length_ratio": 1.3,
                "long_pairs": 2,
                "long_pairs_mean": 0.25,
                "short_pairs_mean": 0.1,
                "share_long_above": 0.5,
            }
        ],
        "length_pair": [
            {
                "corpus": "wikipedia",
                "rank": rank,
                "first": rank - 1,
                "second": 3,
                "first_tokens": 50,
                "second_tokens": 70,
                "first_label": "river",
                "second_label": "iron",
                "cosine": 0.6 - 0.1 * rank,
            }
            for rank in (1, 2)
        ],
        "length_ranking": [
            {
                "corpus": "retrieval",
                "condition": condition,
                "relevant": relevant,
                "boundary": 200.0,
                "read": read,
                "documents": 60,
                "pairs": 12,
                "units": 11,
                "by_short": 0.3,
                "by_long": 0.1,
                "difference": 0.2,
                "low": 0.1,
                "high": 0.3,
            }
            for condition, read in (("natural", 254), ("cut", 40))
            for relevant in ("short", "long")
        ],
        "length_sigma": [
            {
                "corpus": "wikipedia",
                "layer": 0,
                "head": head,
                "length": length,
                "tokens": length + 2,
                "texts": 4,
                "is_causal": False,
                "sigma_a": sigma_a,
                "frobenius": frobenius,
                "sigma_s": 1.1,
                "sigma_s_centred": 0.9,
                "bound": 0.3,
                "bound_centred": 0.29,
                "holds": 0.0,
                "holds_centred": 0.0,
                "sigma_a_value_norm": 2 * sigma_a,
                "hc_energy": 0.9,
            }
            for length in (16, 58)
            for head, (sigma_a, frobenius) in enumerate(SIGMAS)
        ],
    }


def _rise(condition: str) -> dict[str, Any]:
    """The first bin and the last one have a mean under every condition."""
    (first_low, first_high, _, first), *_, (last_low, last_high, _, last) = CURVES[condition]
    assert first is not None
    assert last is not None
    has_share = condition in ("windows", "input_embeddings")
    share = (last - first) / 0.1
    return {
        "corpus": "wikipedia",
        "condition": condition,
        "first_length": (first_low + first_high) / 2,
        "last_length": (last_low + last_high) / 2,
        "first_cosine": first,
        "last_cosine": last,
        "rise": last - first,
        "share_of_natural": None if condition == "natural" else (last - first) / 0.2,
        "share_of_truncation": share if has_share else None,
        "share_of_truncation_low": share - 0.3 if has_share else None,
        "share_of_truncation_high": share + 0.3 if has_share else None,
    }
