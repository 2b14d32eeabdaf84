"""The figures that rules can name: those of the view ``summary_figure``.

A list of its own, so that a mistyped name is said before an audit of hours and not after it; a test compares it with
the view.
"""

from __future__ import annotations

from embaudit.suggest import hint

_LAYER = (
    *("lambda_head_mean", "lambda_head_max", "lambda_head_averaged_attention", "lambda_multi_head_bound"),
    *("lambda_gaussian", "contraction", "contraction_normed", "r", "c", "normalised_spread", "within_text_cosine"),
    *("sigma_a", "contraction_of_means", "r_of_means", "c_of_means", "normalised_spread_of_means"),
    "value_output_norm",
)
FIGURES: dict[str, tuple[str, ...]] = {
    "sticky_summary": ("u", "u_ids", "u_input_embeddings", "reliability", "control_median", "threshold", "sticky"),
    "sticky_token": ("worst_loss", "strong_or_moderate"),
    "sticky_reference_summary": ("u", "cutoff", "threshold", "sticky"),
    "socm_summary": (
        *("socm_mean", "socm_min", "socm_max", "d_mu_mean", "d_sigma_mean", "socm_q05", "socm_q50", "socm_q95"),
        *("trace_mean", "trace_max", "share_trace_above_bound"),
    ),
    "layer_stat": _LAYER,
    "length_rise": ("first_cosine", "last_cosine", "rise", "share_of_natural", "share_of_truncation"),
}


def unknown_figure(summary: str, measure: str) -> str:
    """What is wrong with a figure's name, with the nearest ones; empty where there is such a figure."""
    if summary not in FIGURES:
        return f"no summary is called {summary!r}{hint(summary, FIGURES)}"
    if measure not in FIGURES[summary]:
        elsewhere = [name for name, measures in FIGURES.items() if measure in measures]
        where = f"; {measure} is a figure of {' and '.join(elsewhere)}" if elsewhere else ""
        return f"{summary} has no figure {measure!r}{where or hint(measure, FIGURES[summary])}"
    return ""
