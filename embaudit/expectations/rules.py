"""What must hold of each published table, as data: completeness, ranges, members, and comparisons of columns.

Read by ``suites``, which makes expectations of it. Every range follows from the mathematics of the measure; columns
that ``check.derived`` computes may be compared like any other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

from embaudit.length.curve import CONDITIONS
from embaudit.sticky.scores import PROTOCOLS
from embaudit.table import Direction
from embaudit.tables.watch import Status
from embaudit.vocabulary import entries as vocabulary

# Rounding of float32 embeddings reaches cosines at 1e-6; the identities of SOCM hold in float64 beyond that.
TOLERANCE = 1e-6
# A run whose d_Σ are further than this from float64 is worth a look.
ACCURATE = 1e-4
COSINE = (-1 - TOLERANCE, 1 + TOLERANCE)

# What must not be null beside the keys: every column that the warehouse declares so, and what the verdicts hang on.
_QUANTILES = tuple(f"{group}_q{level}" for group in ("sticky", "ordinary") for level in ("05", "25", "50", "75", "95"))
# Every λ and σ_a is a squared or plain norm, every ratio one of spreads.
_LAYER_RATIOS = (
    *("lambda_head_mean", "lambda_head_max", "lambda_head_averaged_attention", "lambda_multi_head_bound"),
    *("lambda_gaussian", "contraction", "contraction_normed", "r", "c", "normalised_spread", "sigma_a"),
)
_SPREADS = ("spread_h", "spread_z", "spread_y", "spread_x", "mean_norm_y", "mean_norm_x")
_LAMBDA_NAMES = ("head_mean", "head_max", "head_averaged_attention", "multi_head_bound", "gaussian")
_SOCM_QUANTILES = tuple(f"socm_q{level}" for level in ("01", "05", "25", "50", "75", "95", "99"))
_HASHES = ("weights_sha256", "tokenizer_sha256", "config_sha256", "modules_sha256")
REQUIRED: dict[str, tuple[str, ...]] = {
    "checkpoint": (
        *("source", *_HASHES, "architecture", "hidden_size", "parameters", "vocabulary_size"),
        *("pooling", "pooling_is_mean", "modules", "max_length"),
    ),
    "corpus": ("name", "kind", "source", "read", "kept", "duplicate", "blank", "broken", "undecodable", "ingested"),
    "text": ("text",),
    "text_pair": ("first", "second", "relation"),
    "audit_corpus": ("corpus_id",),
    "token": ("token", "text", "category", "is_reachable", "origin", "script", "embedding_norm"),
    "sticky_pair": ("first", "second", "similarity"),
    # Pull is undefined where none of the draws spent has a point below u.
    "sticky_score": ("draws", "slope", "pull_rank", "slope_rank", "is_pilot"),
    "sticky_validation": (
        *("role", "points", "rho", "rho_0", "pull", "excess_pull", "slope", "loss"),
        *("severity", "shift", "near_u_05", "near_u_10", "p_value", "value", "basis"),
    ),
    "sticky_summary": (
        *("u", "u_ids", "u_input_embeddings", "vocabulary_size", "eligible", "scanned", "search", "rungs"),
        *("pilot", "encodes", "exhaustive_encodes", "scan_dtype", "scoring_pairs", "validation_pairs"),
        *("pairs_below_u", "candidates", "controls", "threshold_points", "validation_points", "control_median"),
        *("sticky", "basis"),
    ),
    "sticky_dose": ("role", "points", "slope", "loss"),
    "sticky_shift": ("role", "before", "after"),
    "sticky_attention": (
        *("sticky_tokens", "ordinary_tokens", "sentences", "wasserstein", "permuted_low", "permuted_high"),
        *("p_value", *_QUANTILES),
    ),
    "sticky_enrichment": ("selected", "scanned"),
    "sticky_reference": ("inserted", "score", "score_rank", "is_shortlisted"),
    "sticky_reference_summary": (
        *("u", "scanned", "scoring_pairs", "validation_pairs", "encodes", "cutoff", "candidates", "sticky"),
    ),
    # A text that averages to nothing has no trace.
    "socm_text": ("corpus_id", "tokens", "mean_norm", "is_undefined", "is_truncated"),
    # A text without a trace has no bound, and a comparison with null passes: the bound itself must be there.
    "socm_pair": ("d_mu", "d_sigma", "socm", "d_sigma_lower_bound"),
    "socm_listed_pair": ("first", "second", "d_mu", "d_sigma", "socm", "d_sigma_lower_bound"),
    "socm_summary": (
        *("corpus_id", "texts", "pairs", "socm_mean", "socm_min", "socm_max", "d_mu_mean", "d_sigma_mean"),
        *("trace_mean", "trace_max", "share_trace_above_bound", "pooling_is_mean"),
        *("pair_kind", "undefined", "one_token", "truncated", "method", "accuracy", "checked_pairs", *_SOCM_QUANTILES),
    ),
    "socm_surface": ("socm_mean",),
    "socm_tightness": ("d_mu", "d_sigma", "socm", "gaussian_w2_squared"),
}
REQUIRED |= {
    "audit_backbone": (),
    "watched_revision": ("parameters", "status", "first_seen", "last_seen"),
    "regression": ("value", "predecessor_value", "delta", "is_worse"),
    "gate_result": ("policy", "kind", "observed", "outcome", "trips", "reason", "evaluated"),
    "socm_plane": ("x", "y", "socm", "share"),
    "layer_text": ("tokens", *_SPREADS, *_LAYER_RATIOS[:5], "sigma_a"),
    "layer_stat": (
        *("corpus_id", "family", "norm_placement", "shares_weights", "texts", "undefined", "truncated"),
        *("tokens_mean", "value_output_norm", *_LAYER_RATIOS[:5], "sigma_a"),
    ),
    "layer_head_stat": (
        *("lambda_mean", "attention_spread", "sigma_a", "sigma_a_max", "value_output_norm", "value_norm"),
    ),
    # A bin of fewer than two texts has no mean.
    "length_bin": ("high", "length", "beyond_limit", "texts"),
    "length_rise": (),
    "length_summary": (
        *("corpus_id", "texts", "empty", "read_limit", "configured_limit", "beyond_configured", "beyond_read"),
        *("control_texts", "window", "neighbours", "is_labelled", "long_pairs"),
    ),
    "length_pair": ("first", "second", "first_tokens", "second_tokens", "cosine"),
    "length_sigma": ("tokens", "texts", "is_causal", "sigma_a", "frobenius", "sigma_a_value_norm"),
    # A bin of fewer than two items has no score, a small one no interval.
    "tempscale": ("items", "units", "corpus", "corpus_id", "reads", "max_tokens"),
    "tempscale_choice": (
        *("recommendation", "items", "units", "reason", "corpus", "corpus_id", "reads", "max_tokens"),
    ),
}
# The range of every number that has one: (lowest, highest), None for open.
RANGES: dict[str, dict[str, tuple[float | None, float | None]]] = {
    "checkpoint": {"hidden_size": (1, None), "vocabulary_size": (1, None), "max_length": (1, None)},
    "corpus": {"kept": (1, None), "read": (1, None)},
    "text": {"position": (0, None)},
    "text_pair": {"position": (0, None)},
    "token": {"token_id": (0, None), "embedding_norm": (0, None), "cosine_to_mean": COSINE},
    "sticky_pair": {"similarity": COSINE},
    # rho_t >= 0, so that pull <= 1.
    "sticky_score": {
        "draws": (1, None),
        "pull": (None, 1 + TOLERANCE),
        "pull_rank": (1, None),
        "slope_rank": (1, None),
    },
    "sticky_validation": {
        "points": (1, None),
        "rho": (0, 2),
        "rho_0": (0, 2),
        "pull": (None, 1 + TOLERANCE),
        "shift": (-2 - TOLERANCE, 2 + TOLERANCE),
        "compression": (0, None),
        **dict.fromkeys(("near_u_05", "near_u_10", "p_value", "q_value"), (0, 1)),
    },
    # u is the squared length of a mean of unit vectors.
    "sticky_summary": {
        "u": (0, 1 + TOLERANCE),
        "u_ids": (0, 1 + TOLERANCE),
        "u_input_embeddings": (0, 1 + TOLERANCE),
        "pairs_below_u": (1, None),
        "controls": (1, None),
        "encodes": (1, None),
        "pilot": (0, None),
        "pilot_missed": (0, None),
        "rank_correlation": (-1 - TOLERANCE, 1 + TOLERANCE),
        **dict.fromkeys(("miss_rate", "miss_low", "miss_high", "near_u_05_before", "near_u_10_before"), (0, 1)),
    },
    "sticky_dose": {"copies": (1, None), "points": (1, None), "pull": (None, 1 + TOLERANCE)},
    "sticky_shift": {"position": (0, None), "before": COSINE, "after": COSINE},
    # Attention received is a mean of softmax weights.
    "sticky_attention": {
        "layer": (0, None),
        **dict.fromkeys(("sticky_tokens", "ordinary_tokens", "sentences"), (1, None)),
        **dict.fromkeys(("wasserstein", "permuted_low", "permuted_high", "p_value", *_QUANTILES), (0, 1 + TOLERANCE)),
    },
    "sticky_enrichment": {
        "selected": (1, None),
        "scanned": (1, None),
        "selected_with": (0, None),
        "fold": (0, None),
        "odds_ratio": (0, None),
        **dict.fromkeys(("share_selected", "share_scanned", "p_value", "q_value", "auc"), (0, 1)),
    },
    "sticky_reference": {"score": (0, None), "score_rank": (1, None), "value": (0, 1 + TOLERANCE)},
    "sticky_reference_summary": {
        "u": (0, 1 + TOLERANCE),
        **dict.fromkeys(("scoring_pairs", "validation_pairs", "candidates"), (1, None)),
        "sticky": (0, None),
    },
    "socm_text": {
        "tokens": (1, None),
        "mean_norm": (0, None),
        "trace_sigma": (0, None),
        "mean_cosine": (0, 1 + TOLERANCE),
    },
    "socm_pair": {"d_mu": (-TOLERANCE, 1 + TOLERANCE), "first": (0, None)},
    "socm_listed_pair": {
        "d_mu": (-TOLERANCE, 1 + TOLERANCE),
        **dict.fromkeys(("position", "first", "second"), (0, None)),
    },
    "socm_summary": {
        "texts": (2, None),
        "pairs": (1, None),
        **dict.fromkeys(("undefined", "one_token", "truncated", "accuracy", "checked_pairs"), (0, None)),
        **dict.fromkeys(("share_trace_above_bound", "share_cosine_above_bound", "share_bounds_agree"), (0, 1)),
    },
    "socm_surface": {"alpha": (0, None), "beta": (0, None), "socm_mean": (0, None)},
    "socm_tightness": {
        **dict.fromkeys(("d_mu", "d_mu_sif"), (-TOLERANCE, 1 + TOLERANCE)),
        **dict.fromkeys(("first", "w2_squared"), (0, None)),
    },
}
RANGES |= {
    # -1 is the text's mean; the plane keeps a part of the tokens' squared length.
    "socm_plane": {"position": (0, None), "point": (-1, None), "share": (0, 1 + TOLERANCE)},
    "layer_text": {
        "layer": (0, None),
        "tokens": (2, None),
        "within_text_cosine": (0, 1 + TOLERANCE),
        **dict.fromkeys((*_SPREADS, *_LAYER_RATIOS), (0, None)),
    },
    "layer_stat": {
        "layer": (0, None),
        "texts": (1, None),
        **dict.fromkeys(("undefined", "truncated"), (0, None)),
        "tokens_mean": (2, None),
        "within_text_cosine": (0, 1 + TOLERANCE),
        **dict.fromkeys(_LAYER_RATIOS, (0, None)),
        **dict.fromkeys((f"holds_{name}" for name in _LAMBDA_NAMES), (0, 1)),
        # With the measured contraction Theorem 1 is the triangle inequality.
        "holds_contraction": (1, 1),
    },
    "layer_head_stat": dict.fromkeys(REQUIRED["layer_head_stat"], (0, None)),
    "length_bin": {
        **dict.fromkeys(("low", "length", "texts"), (0, None)),
        "high": (1, None),
        "cosine_mean": COSINE,
    },
    "length_rise": {
        **dict.fromkeys(("first_length", "last_length"), (0, None)),
        **dict.fromkeys(("first_cosine", "last_cosine"), COSINE),
    },
    "length_summary": {
        **dict.fromkeys(("texts", "empty", "beyond_configured", "beyond_read", "control_texts"), (0, None)),
        **dict.fromkeys(("neighbours", "long_pairs", "neighbour_length_ratio", "wrong_length_ratio"), (0, None)),
        **dict.fromkeys(("read_limit", "configured_limit", "position_limit", "window"), (1, None)),
        **dict.fromkeys(("hubness_spearman", "rank_spearman", "long_pairs_mean", "short_pairs_mean"), COSINE),
        **dict.fromkeys(("hubness_p", "knn_accuracy", "share_long_above"), (0, 1)),
    },
    "length_pair": {
        **dict.fromkeys(("rank", "first_tokens", "second_tokens"), (1, None)),
        "first": (0, None),
        "cosine": COSINE,
    },
    "length_sigma": {
        **dict.fromkeys(("layer", "head", "sigma_a", "sigma_a_value_norm"), (0, None)),
        **dict.fromkeys(("sigma_s", "sigma_s_centred", "bound", "bound_centred"), (0, None)),
        **dict.fromkeys(("length", "tokens", "texts"), (1, None)),
        **dict.fromkeys(("holds", "holds_centred"), (0, 1)),
        "hc_energy": (0, 1 + TOLERANCE),
    },
    "regression": {"tolerance": (0, None)},
    # Accuracy and nDCG lie in [0, 1], Spearman's ρ in [-1, 1].
    "tempscale": {
        **dict.fromkeys(("bin", "items", "units"), (0, None)),
        "tau": (1e-12, None),
        "max_tokens": (1, None),
        "score": COSINE,
        **dict.fromkeys(("difference", "low", "high"), (2 * COSINE[0], 2 * COSINE[1])),
    },
    "tempscale_choice": {
        **dict.fromkeys(("bin", "items", "units"), (0, None)),
        "tau": (1e-12, None),
        "max_tokens": (1, None),
        **dict.fromkeys(("score_before", "score_after"), COSINE),
        **dict.fromkeys(("difference", "low", "high"), (2 * COSINE[0], 2 * COSINE[1])),
    },
}
MEMBERS: dict[str, dict[str, tuple[str, ...]]] = {
    "gate_result": {
        "kind": ("limit", "change", "severity", "require"),
        "outcome": ("passed", "tripped", "missing"),
    },
    "corpus": {"kind": ("texts", "pairs")},
    "token": {"category": vocabulary.CATEGORIES},
    "sticky_pair": {"purpose": ("scoring", "validation", "shift", "reference_scoring", "reference_validation")},
    "sticky_validation": {
        "protocol": PROTOCOLS,
        "role": ("candidate", "control"),
        "severity": ("strong", "moderate", "weak", "negligible"),
        "basis": ("screened", "validated"),
    },
    "sticky_summary": {
        "protocol": PROTOCOLS,
        "basis": ("screened", "validated"),
        "search": ("sequential", "exhaustive"),
    },
    "sticky_dose": {"role": ("candidate", "control")},
    "socm_summary": {"pair_kind": ("all", "listed"), "method": ("eigenvalues", "polar")},
    "sticky_shift": {"role": ("sticky", "ordinary")},
    "sticky_reference_summary": {"protocol": ("reference",)},
    "sticky_reference": {"verdict": ("sticky", "not_sticky", "no_threshold")},
    "socm_plane": {"pair": ("highest", "median", "lowest")},
    "watched_revision": {"status": get_args(Status)},
    "regression": {"worse_when": get_args(Direction)},
    "layer_stat": {"norm_placement": ("post", "pre", "sandwich", "parallel")},
    "length_bin": {"condition": CONDITIONS},
    "length_rise": {"condition": CONDITIONS},
    "tempscale": {
        "task": ("classification_knn", "classification_logistic", "retrieval", "sts"),
        "arm": ("none", "temperature", "chunk_average", "whitening", "centring"),
        "split": ("choose", "report"),
        "reads": ("limit", "positions"),
    },
    "tempscale_choice": {
        "task": ("classification_knn", "classification_logistic", "retrieval", "sts"),
        "recommendation": ("yes", "no", "unsupported"),
        "reads": ("limit", "positions"),
    },
}
# Pairs of columns where the first is at least the second, row by row; columns in ``check.derived`` included.
AT_LEAST: dict[str, tuple[tuple[str, str], ...]] = {
    "sticky_validation": (
        *(("pull_high", "pull_low"), ("slope_high", "slope_low"), ("loss_high", "loss_low")),
        *(("near_u_10", "near_u_05"), ("q_value", "p_value")),
    ),
    # (sqrt tr1 - sqrt tr2)^2 / 4 <= d_sigma <= (tr1 + tr2) / 4, and SOCM <= d_sigma.
    **dict.fromkeys(
        ("socm_pair", "socm_listed_pair"),
        (
            ("d_sigma", "d_sigma_lower_bound"),
            ("d_sigma_upper_bound", "d_sigma"),
            ("d_sigma_and_tolerance", "socm"),
        ),
    ),
    "socm_summary": (
        *(("socm_max", "socm_mean"), ("socm_mean", "socm_min")),
        *(("socm_max", "socm_q99"), ("socm_q01", "socm_min")),
        *((higher, lower) for lower, higher in pairwise(_SOCM_QUANTILES)),
    ),
    # Gelbrich's bound: no two clouds with these moments are nearer than the Gaussians.
    "socm_tightness": (("w2_squared_and_tolerance", "gaussian_w2_squared"),),
    "sticky_summary": (
        *(("miss_high", "miss_rate"), ("miss_rate", "miss_low"), ("near_u_10_before", "near_u_05_before")),
        *(("vocabulary_size", "eligible"), ("eligible", "scanned"), ("scanned", "pilot")),
        *(("pilot", "pilot_shortlisted"), ("pilot_shortlisted", "pilot_missed")),
        ("validation_points", "threshold_points"),
    ),
    "sticky_attention": (
        ("permuted_high", "permuted_low"),
        # The five quantiles of each group rise.
        *((higher, lower) for five in (_QUANTILES[:5], _QUANTILES[5:]) for lower, higher in pairwise(five)),
    ),
    "sticky_enrichment": (
        *(("selected", "selected_with"), ("scanned_with", "selected_with"), ("scanned", "scanned_with")),
        *(("scanned", "selected"), ("q_value", "p_value")),
    ),
    "sticky_reference_summary": (("scanned", "candidates"), ("candidates", "sticky")),
    "layer_text": (("lambda_head_max", "lambda_head_mean"), ("lambda_multi_head_bound", "lambda_head_max")),
    "layer_stat": (
        *((f"{name}_high", name) for name in (*_LAYER_RATIOS, "within_text_cosine")),
        *((name, f"{name}_low") for name in (*_LAYER_RATIOS, "within_text_cosine")),
    ),
    "layer_head_stat": (("sigma_a_max", "sigma_a"),),
    "length_bin": (("cosine_high", "cosine_mean"), ("cosine_mean", "cosine_low"), ("high", "length")),
    "length_rise": (
        ("last_length", "first_length"),
        ("share_of_truncation_high", "share_of_truncation"),
        ("share_of_truncation", "share_of_truncation_low"),
    ),
    "length_summary": (
        *(("texts", "beyond_read"), ("texts", "beyond_configured"), ("texts", "control_texts")),
        ("read_limit", "window"),
    ),
    # ||PA||_2 <= ||PA||_F.
    "length_sigma": (("frobenius_and_tolerance", "sigma_a"), ("tokens", "length")),
    "tempscale": (("high", "low"), ("items", "units"), ("bin_high", "bin_low")),
    "tempscale_choice": (("high", "low"), ("items", "units"), ("bin_high", "bin_low")),
    "gate_result": (("highest", "lowest"),),
}
# The same, never equal: a text makes no pair with itself.
ABOVE: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(("socm_pair", "socm_tightness", "length_pair"), (("second", "first"),)),
    "length_bin": (("high", "low"),),
}
# Columns that ``check.derived`` computes and that must be true in every row.
MUST_HOLD: dict[str, tuple[str, ...]] = {
    "watched_revision": ("what_is_done_has_its_audit", "times_are_in_order"),
    "regression": ("delta_is_of_its_values", "worse_is_beyond_tolerance", "audits_are_two"),
    "socm_text": ("undefined_has_no_trace", "flag_agrees_with_trace"),
    "socm_pair": ("socm_is_product",),
    "socm_listed_pair": ("socm_is_product",),
    "corpus": ("counts_add_up",),
    "sticky_score": ("ranks_are_complete",),
    "sticky_validation": ("verdict_agrees_with_threshold", "severity_agrees_with_loss", "slope_within_compression"),
    "sticky_summary": ("miss_rate_agrees_with_counts",),
    "sticky_shift": ("pairs_are_the_same",),
    "layer_text": ("theorem_1_holds",),
    "length_bin": ("mean_needs_two_texts",),
    "length_rise": ("rise_is_of_its_ends",),
    "tempscale": ("only_other_arms_have_differences",),
    "tempscale_choice": ("recommendation_agrees_with_interval", "difference_is_of_the_scores"),
    "gate_result": ("outcome_agrees_with_limits", "what_trips_has_failed"),
    "sticky_enrichment": ("shares_agree_with_counts",),
    "sticky_reference": ("ranks_are_complete", "shortlist_has_values", "verdict_agrees_with_threshold"),
}
