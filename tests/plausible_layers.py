"""Rows of the layer tables and of a plane, small enough to check by hand: two layers, two heads, three texts."""

from __future__ import annotations

from typing import Any

from embaudit.measures.layers.layers import LAMBDAS, RATIOS

TEXTS = 3
LAYERS = 2
HEADS = 2
# S(H), S(Z), S(Y), S(X), ||mu(Y)||, ||mu(X)|| of every text.
SPREADS = {
    "spread_h": 4.0,
    "spread_z": 1.0,
    "spread_y": 5.0,
    "spread_x": 3.0,
    "mean_norm_y": 2.0,
    "mean_norm_x": 1.0,
}
RATIO_VALUES = {
    "lambda_head_mean": 0.3,
    "lambda_head_max": 0.4,
    "lambda_head_averaged_attention": 0.5,
    "lambda_multi_head_bound": 1.2,
    "lambda_gaussian": 0.2,
    "contraction": 1.0 / 4.0,
    "contraction_normed": 0.2,
    "r": 4.0 / 4.0,
    "c": (3.0 / 1.0) / (5.0 / 4.0),
    "normalised_spread": 3.0 / 1.0,
    "within_text_cosine": 0.3,
    "sigma_a": 0.9,
}


def layer_rows() -> dict[str, list[dict[str, Any]]]:
    """The four tables; the texts of a layer are alike."""
    assert set(RATIO_VALUES) == set(RATIOS)
    return {
        "layer_text": [
            {"corpus": "wikipedia", "position": i, "layer": layer, "tokens": 5 + i, **RATIO_VALUES, **SPREADS}
            for i in range(TEXTS)
            for layer in range(LAYERS)
        ],
        "layer_stat": [_stat(layer) for layer in range(LAYERS)],
        "layer_head_stat": [
            {
                "corpus": "wikipedia",
                "layer": layer,
                "head": head,
                "lambda_mean": (0.2, 0.4)[head],
                "attention_spread": 0.1,
                "sigma_a": 0.9,
                "sigma_a_max": 1.1,
                "value_output_norm": (1.4, 2.0)[head],
                "value_norm": 1.5,
            }
            for layer in range(LAYERS)
            for head in range(HEADS)
        ],
        "pooled_stat": [
            {
                "corpus": "wikipedia",
                "corpus_id": "w1",
                "texts": TEXTS,
                # The norm behind the last layer takes half of its spread away.
                "has_final_norm": True,
                **_estimate("normalised_spread", 1.5),
                **_estimate("within_text_cosine", 0.4),
                "normalised_spread_of_means": 1.4,
            }
        ],
    }


def _estimate(name: str, value: float) -> dict[str, float]:
    return {name: value, f"{name}_low": value - 0.01, f"{name}_high": value + 0.01}


def _stat(layer: int) -> dict[str, Any]:
    means: dict[str, Any] = {}
    for name, value in RATIO_VALUES.items():
        means |= _estimate(name, value)
    return {
        "corpus": "wikipedia",
        "corpus_id": "w1",
        "layer": layer,
        "family": "llama",
        "norm_placement": "pre",
        "shares_weights": False,
        "texts": TEXTS,
        "undefined": 1,
        "truncated": 0,
        "tokens_mean": 6.0,
        "value_output_norm": 2.5,
        **means,
        **{f"{name}_of_means": RATIO_VALUES[name] for name in ("contraction", "r", "c", "normalised_spread")},
        **{f"holds_{name.removeprefix('lambda_')}": 1.0 for name in LAMBDAS},
    }


def plane_rows() -> list[dict[str, Any]]:
    """One pair of two texts: each a mean and two tokens around it."""
    return [
        {
            "corpus": "wikipedia",
            "pair": "highest",
            "position": position,
            "point": point,
            "token": None if point < 0 else ("river", "##s")[point],
            "x": 0.9 + 0.1 * point,
            "y": 0.2 * position,
            "socm": 0.5,
            "share": 0.8,
        }
        for position in (0, 2)
        for point in (-1, 0, 1)
    ]
