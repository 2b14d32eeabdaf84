"""Rows of the SOCM tables, small enough to check by hand: four texts, all their pairs, and two listed ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

TRACES = (1.0, 1.44, 2.25, 0.64)
EXPONENTS = (0.0, 1.0)
# Quantiles of the six SOCM values of ``socm_pairs``, linear between neighbours, are worked out below.
LEVELS = (1, 5, 25, 50, 75, 95, 99)


def socm_rows() -> dict[str, list[dict[str, Any]]]:
    """Every table of the measure for one audit."""
    pairs = socm_pairs("wikipedia", TRACES)
    return {
        "socm_text": [
            {
                "corpus": "wikipedia",
                "corpus_id": "w1",
                "position": i,
                "tokens": 5 + i,
                "mean_norm": 0.5,
                "trace_sigma": trace,
                "exceeds_trace_bound": trace > 2,
                # For tokens of one length.
                "mean_cosine": 1 / (1 + trace),
                "is_undefined": False,
                "is_truncated": False,
            }
            for i, trace in enumerate(TRACES)
        ],
        "socm_pair": pairs,
        "socm_listed_pair": [
            {**pairs[0], "position": 0},
            # A listed pair may name the later text first.
            {**pairs[1], "position": 1, "first": pairs[1]["second"], "second": pairs[1]["first"]},
        ],
        "socm_summary": [_summary(pairs)],
        "socm_cut": [
            {
                "corpus": "wikipedia",
                "tokens": tokens,
                "texts": 4,
                "pairs": 6,
                "d_mu_mean": 0.2,
                "d_sigma_mean": 0.25,
                "socm_mean": 0.2 + tokens / 1000,
                "socm_low": 0.19,
                "socm_high": 0.24,
                "trace_mean": 1.2,
                "share_trace_above_bound": 0.25,
                "undefined": 0,
            }
            for tokens in (16, 32)
        ],
        "socm_length": [
            {
                "corpus": "wikipedia",
                "shorter": 1,
                "longer": 1,
                "texts": len(TRACES),
                "pairs": len(pairs),
                "d_mu_mean": sum(row["d_mu"] for row in pairs) / len(pairs),
                "d_sigma_mean": sum(row["d_sigma"] for row in pairs) / len(pairs),
                "socm_mean": sum(row["socm"] for row in pairs) / len(pairs),
                "socm_low": 0.1,
                "socm_high": 0.9,
                "trace_mean": sum(TRACES) / len(TRACES),
            }
        ],
        "socm_contrast": [
            {
                "corpus": "msmarco-hard-negatives",
                "distance": distance,
                "pairs": 4,
                "queries": 4,
                "listed_mean": 0.3,
                "random_mean": 0.5,
                "difference": -0.2,
                "difference_low": -0.25,
                "difference_high": -0.15,
            }
            for distance in ("socm", "d_mu", "d_sigma")
        ],
        "socm_pooling": [
            {
                "corpus": "wikipedia",
                "pooling": pooling,
                "is_served": pooling == "mean",
                "texts": len(TRACES),
                "pairs": len(pairs),
                "kept": kept,
                "kept_low": kept - 0.05,
                "kept_high": kept + 0.05,
                "cosine_to_mean": cosine,
                "correlation": correlation,
                "correlation_low": None if correlation is None else correlation - 0.1,
                "correlation_high": None if correlation is None else correlation + 0.1,
            }
            for pooling, kept, cosine, correlation in (
                ("mean", 0.4, 1.0, 0.6),
                ("cls", 0.3, 0.8, 0.5),
                ("lasttoken", 0.1, 0.5, None),
                ("max", 0.3, 0.8, 0.4),
                ("weightedmean", 0.35, 0.95, 0.6),
            )
        ],
        "socm_surface": [
            {
                "corpus": "wikipedia",
                "alpha": alpha,
                "beta": beta,
                "socm_mean": sum((1 - row["d_mu"]) ** alpha * row["d_sigma"] ** beta for row in pairs) / len(pairs),
            }
            for alpha in EXPONENTS
            for beta in EXPONENTS
        ],
        "socm_tightness": [
            {
                **row,
                "w2_squared": 8 * (row["d_mu"] + row["d_sigma"]),
                "gaussian_w2_squared": 4 * (row["d_mu"] + row["d_sigma"]),
                "d_mu_sif": row["d_mu"],
                "d_sigma_sif": row["d_sigma"] / 2,
                "socm_sif": row["socm"] / 2,
                "d_mu_sif_removed": row["d_mu"],
                "d_sigma_sif_removed": row["d_sigma"] / 4,
                "socm_sif_removed": row["socm"] / 4,
            }
            for row in pairs[:2]
        ],
    }


def socm_pairs(corpus: str, traces: Sequence[float]) -> list[dict[str, Any]]:
    """All pairs of texts with these traces; d_Σ in the middle of its bounds."""
    rows = []
    for first, second in combinations(range(len(traces)), 2):
        a, b = traces[first], traces[second]
        d_sigma = ((a**0.5 - b**0.5) ** 2 / 4 + (a + b) / 4) / 2
        d_mu = 0.1 * (first + second)
        socm_value = (1 - d_mu) * d_sigma
        rows.append(
            {"corpus": corpus, "first": first, "second": second, "d_mu": d_mu, "d_sigma": d_sigma, "socm": socm_value}
        )
    return rows


def _summary(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(row["socm"] for row in pairs)

    def mean(column: str) -> float:
        return float(sum(row[column] for row in pairs)) / len(pairs)

    def quantile(level: int) -> float:
        rank = level / 100 * (len(ordered) - 1)
        below = int(rank)
        above = min(below + 1, len(ordered) - 1)
        return float(ordered[below] + (rank - below) * (ordered[above] - ordered[below]))

    return {
        "corpus": "wikipedia",
        "corpus_id": "w1",
        "pair_kind": "all",
        "texts": len(TRACES),
        "pairs": len(pairs),
        "undefined": 0,
        "one_token": 0,
        "truncated": 0,
        "socm_mean": mean("socm"),
        "socm_low": mean("socm") - 0.05,
        "socm_high": mean("socm") + 0.05,
        "socm_min": ordered[0],
        "socm_max": ordered[-1],
        **{f"socm_q{level:02}": quantile(level) for level in LEVELS},
        "d_mu_mean": mean("d_mu"),
        "d_sigma_mean": mean("d_sigma"),
        "trace_mean": sum(TRACES) / len(TRACES),
        "trace_max": max(TRACES),
        "share_trace_above_bound": 0.25,
        "share_cosine_above_bound": 0.75,
        "share_bounds_agree": 1.0,
        "correlation_trace": 0.9,
        "correlation_length": 0.8,
        "method": "eigenvalues",
        "accuracy": 1e-9,
        "checked_pairs": 6,
        "pooling_is_mean": True,
    }
