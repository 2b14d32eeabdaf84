"""The columns of SOCM's staged tables, as ``socm``, ``socm_listed`` and ``socm_tightness`` write them."""

from __future__ import annotations

MEASURE = "socm"
TEXT_SCHEMA = {
    "corpus": "string",
    "corpus_id": "string",
    "position": "int64",
    "tokens": "int32",
    "mean_norm": "float64",
    "trace_sigma": "float64",
    "exceeds_trace_bound": "bool",
    "mean_cosine": "float64",
    "is_undefined": "bool",
    "is_truncated": "bool",
}
PAIR_SCHEMA = {
    "corpus": "string",
    "first": "int32",
    "second": "int32",
    "d_mu": "float64",
    "d_sigma": "float64",
    "socm": "float64",
}
LISTED_SCHEMA = {"corpus": "string", "position": "int64", **{k: v for k, v in PAIR_SCHEMA.items() if k != "corpus"}}
SUMMARY_SCHEMA = {
    "corpus": "string",
    "corpus_id": "string",
    "pair_kind": "string",
    "texts": "int32",
    "pairs": "int64",
    **dict.fromkeys(("undefined", "one_token", "truncated"), "int32"),
    **dict.fromkeys(("socm_mean", "socm_low", "socm_high", "socm_min", "socm_max"), "float64"),
    **dict.fromkeys((f"socm_q{level}" for level in ("01", "05", "25", "50", "75", "95", "99")), "float64"),
    **dict.fromkeys(("d_mu_mean", "d_sigma_mean", "trace_mean", "trace_max"), "float64"),
    **dict.fromkeys(("share_trace_above_bound", "share_cosine_above_bound", "share_bounds_agree"), "float64"),
    "method": "string",
    "accuracy": "float64",
    "checked_pairs": "int32",
    "pooling_is_mean": "bool",
}
SURFACE_SCHEMA = {"corpus": "string", **dict.fromkeys(("alpha", "beta", "socm_mean"), "float64")}
TIGHTNESS_SCHEMA = {
    **PAIR_SCHEMA,
    **dict.fromkeys(("w2_squared", "gaussian_w2_squared", "d_mu_sif", "d_sigma_sif", "socm_sif"), "float64"),
}
