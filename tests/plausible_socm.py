"""Rows of SOCM and of the layers, small enough to check by hand: four texts, all their pairs, and two listed ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, quantiles
from typing import Any

from declared_rows import Table, row_of, rows_of

from embaudit.measures.layers.layers import LAMBDAS, RATIOS

TRACES = (1.0, 1.44, 2.25, 0.64)
LEVELS = (1, 5, 25, 50, 75, 95, 99)
# S(H), S(Z), S(Y), S(X), ||mu(Y)||, ||mu(X)|| of every text.
SPREADS = {
    **{"spread_h": 4.0, "spread_z": 1.0, "spread_y": 5.0, "spread_x": 3.0},
    **{"mean_norm_y": 2.0, "mean_norm_x": 1.0},
}
RATIO_VALUES = {
    **{"lambda_head_mean": 0.3, "lambda_head_max": 0.4, "lambda_head_averaged_attention": 0.5},
    **{"lambda_multi_head_bound": 1.2, "lambda_gaussian": 0.2},
    **{"contraction": 1.0 / 4.0, "contraction_normed": 0.2, "r": 4.0 / 4.0, "c": (3.0 / 1.0) / (5.0 / 4.0)},
    **{"normalised_spread": 3.0 / 1.0, "within_text_cosine": 0.3, "sigma_a": 0.9},
}


def socm_rows() -> dict[str, Table]:
    """Every table of the measure for one audit."""
    pairs = socm_pairs("wikipedia", TRACES)
    means = {f"{name}_mean": fmean(row[name] for row in pairs) for name in ("d_mu", "d_sigma", "socm")}
    return {
        "socm_text": rows_of(
            "socm_text",
            "position tokens trace_sigma exceeds_trace_bound mean_cosine",
            # The cosine is that of tokens of one length.
            *((i, 5 + i, trace, trace > 2, 1 / (1 + trace)) for i, trace in enumerate(TRACES)),
        ),
        "socm_pair": pairs,
        "socm_listed_pair": [
            {**pairs[0], "position": 0},
            # A listed pair may name the later text first.
            {**pairs[1], "position": 1, "first": pairs[1]["second"], "second": pairs[1]["first"]},
        ],
        "socm_summary": [_summary([row["socm"] for row in pairs], means)],
        "socm_cut": rows_of("socm_cut", "tokens socm_mean", (16, 0.216), (32, 0.232), texts=4, pairs=6, undefined=0),
        "socm_length": [row_of("socm_length", texts=len(TRACES), pairs=len(pairs), trace_mean=fmean(TRACES), **means)],
        "socm_contrast": rows_of(
            "socm_contrast",
            "distance",
            *(("socm",), ("d_mu",), ("d_sigma",)),
            **{"corpus": "msmarco-hard-negatives", "pairs": 4, "queries": 4},
            **{"listed_mean": 0.3, "random_mean": 0.5, "difference": -0.2},
        ),
        "socm_pooling": rows_of(
            "socm_pooling",
            "pooling is_served kept cosine_to_mean correlation",
            ("mean", True, 0.4, 1.0, 0.6),
            ("cls", False, 0.3, 0.8, 0.5),
            ("lasttoken", False, 0.1, 0.5, None),
            ("max", False, 0.3, 0.8, 0.4),
            ("weightedmean", False, 0.35, 0.95, 0.6),
            **{"texts": len(TRACES), "pairs": len(pairs)},
        ),
        "socm_surface": rows_of(
            "socm_surface",
            "alpha beta socm_mean",
            *(
                (alpha, beta, fmean((1 - row["d_mu"]) ** alpha * row["d_sigma"] ** beta for row in pairs))
                for alpha in (0.0, 1.0)
                for beta in (0.0, 1.0)
            ),
        ),
        "socm_tightness": [
            {
                **row,
                **{"w2_squared": 8 * (row["d_mu"] + row["d_sigma"])},
                **{"gaussian_w2_squared": 4 * (row["d_mu"] + row["d_sigma"])},
                **{"d_mu_sif": row["d_mu"], "d_sigma_sif": row["d_sigma"] / 2, "socm_sif": row["socm"] / 2},
                **{"d_mu_sif_removed": row["d_mu"], "d_sigma_sif_removed": row["d_sigma"] / 4},
                **{"socm_sif_removed": row["socm"] / 4},
            }
            for row in pairs[:2]
        ],
        # One pair of two texts: each a mean and two tokens around it.
        "socm_plane": rows_of(
            "socm_plane",
            "position point token x y",
            *(
                (position, point, token, 0.9 + 0.1 * point, 0.2 * position)
                for position in (0, 2)
                for point, token in ((-1, None), (0, "river"), (1, "##s"))
            ),
            share=0.8,
        ),
    }


def socm_pairs(corpus: str, traces: Sequence[float]) -> Table:
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


def _summary(values: list[float], means: dict[str, float]) -> dict[str, Any]:
    percentiles = quantiles(values, n=100, method="inclusive")
    return row_of(
        "socm_summary",
        **{"texts": len(TRACES), "pairs": len(values), "undefined": 0, "one_token": 0, "truncated": 0, **means},
        **{"socm_min": min(values), "socm_max": max(values)},
        **{f"socm_q{level:02}": percentiles[level - 1] for level in LEVELS},
        **{"trace_mean": fmean(TRACES), "trace_max": max(TRACES), "share_trace_above_bound": 0.25},
        **{"share_cosine_above_bound": 0.75, "share_bounds_agree": 1.0},
        **{"correlation_trace": 0.9, "correlation_length": 0.8, "accuracy": 1e-9, "checked_pairs": 6},
    )


def layer_rows() -> dict[str, Table]:
    """The four tables: two layers of two heads, three texts; the texts of a layer are alike."""
    assert set(RATIO_VALUES) == set(RATIOS)
    places = [(position, layer) for position in range(3) for layer in range(2)]
    return {
        "layer_text": rows_of(
            "layer_text",
            "position layer tokens",
            *((position, layer, 5 + position) for position, layer in places),
            **RATIO_VALUES,
            **SPREADS,
        ),
        "layer_stat": rows_of(
            "layer_stat",
            "layer",
            *((0,), (1,)),
            **{"family": "llama", "norm_placement": "pre", "texts": 3, "truncated": 0},
            **{"tokens_mean": 6.0, "value_output_norm": 2.5},
            **RATIO_VALUES,
            **{f"{name}_of_means": RATIO_VALUES[name] for name in ("contraction", "r", "c", "normalised_spread")},
            **{f"holds_{name.removeprefix('lambda_')}": 1.0 for name in LAMBDAS},
        ),
        "layer_head_stat": rows_of(
            "layer_head_stat",
            "layer head lambda_mean value_output_norm",
            *((layer, *head) for layer in range(2) for head in ((0, 0.2, 1.4), (1, 0.4, 2.0))),
            **{"attention_spread": 0.1, "sigma_a": 0.9, "sigma_a_max": 1.1, "value_norm": 1.5},
        ),
        # The norm behind the last layer takes half of its spread away.
        "pooled_stat": [
            row_of(
                "pooled_stat",
                **{"texts": 3, "has_final_norm": True, "normalised_spread": 1.5, "within_text_cosine": 0.4},
                normalised_spread_of_means=1.4,
            )
        ],
    }
