"""How rows are broken for the rules of their tables, and what fails for it; and unusual rows in which nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from broken_rows import GOOD, Broken, accepted, broken

EARLY = pd.Timestamp("2026-01-01", tz="UTC")
BELOW_ITS_BOUND = (
    *("greater d_sigma, d_sigma_lower_bound", "greater d_sigma_and_tolerance, socm"),
    "in_set socm_is_product",
)
# A search that scanned everything.
NO_PILOT = {
    **{"pilot": 0, "search": "exhaustive"},
    **dict.fromkeys(("pilot_shortlisted", "pilot_missed", "miss_rate", "miss_low", "miss_high", "rank_correlation")),
    "scan_speedup": None,
}


def without_threshold(table: str, column: str, is_judged: Callable[[dict[str, Any]], bool]) -> Iterator[Broken]:
    """That there is no threshold is a value of its own."""
    for i, row in enumerate(GOOD[table]):
        yield accepted(i, **{"threshold": None, column: "no_threshold" if is_judged(row) else None})


BY_HAND: dict[str, list[Broken]] = {
    "sticky_score": [
        broken(3, "in_set ranks_are_complete", pull_rank=999),
        broken(3, "in_set ranks_are_complete", "null slope_rank", slope_rank=None),
    ],
    "sticky_validation": [
        # A spread in float32 is smaller than the slope by its rounding; where all similarities are equal there is none.
        *(accepted(i, compression=row["slope"] * (1 - 1e-5)) for i, row in enumerate(GOOD["sticky_validation"])),
        accepted(0, compression=None),
        *without_threshold("sticky_validation", "outlier", lambda row: row["role"] == "candidate"),
        broken(0, "in_set outlier_agrees_with_threshold", outlier="no"),
        broken(1, "in_set outlier_agrees_with_threshold", outlier=None),
        broken(1, "in_set outlier_agrees_with_threshold", threshold=None),
        broken(6, "in_set outlier_agrees_with_threshold", outlier="no"),
        broken(1, "in_set severity_agrees_with_loss", severity="weak"),
        broken(1, "in_set severity", "in_set severity_agrees_with_loss", severity="awful"),
        broken(2, "in_set slope_within_compression", compression=0.39),
    ],
    "sticky_summary": [
        accepted(0, **NO_PILOT),
        broken(0, "in_set miss_rate_agrees_with_counts", **{**NO_PILOT, "miss_rate": 0.0}),
        accepted(0, pilot_shortlisted=0, miss_rate=None, miss_low=None, miss_high=None),
        accepted(0, reliability=None, reliability_low=None, reliability_high=None),
        broken(0, "in_set miss_rate_agrees_with_counts", miss_rate=0.5),
        broken(0, "in_set miss_rate_agrees_with_counts", miss_high=None),
        broken(0, "greater pilot_shortlisted, pilot_missed", "in_set miss_rate_agrees_with_counts", pilot_missed=2),
    ],
    "sticky_severity": [
        # No bound below nothing, and then the lower end of the estimate lies above it.
        broken(0, "between validated", "in_set capped_counts_have_an_estimate", validated=-1),
        broken(1, "in_set capped_counts_have_an_estimate", is_capped=True),
        accepted(1, estimated=None, estimated_low=None, estimated_high=None),
        accepted(0, validated=0, estimated_low=1.2, is_capped=True, confirmed=0),
    ],
    "sticky_enrichment": [
        broken(6, "between fold", "in_set shares_agree_with_counts", fold=-1.0),
        broken(6, "in_set shares_agree_with_counts", fold=7.0),
        broken(6, "in_set shares_agree_with_counts", share_scanned=None),
        broken(
            6,
            "greater selected, selected_with",
            "greater scanned_with, selected_with",
            "in_set shares_agree_with_counts",
            selected_with=2,
        ),
        broken(6, "greater scanned_with, selected_with", "in_set shares_agree_with_counts", scanned_with=0),
        broken(6, "greater scanned, scanned_with", "in_set shares_agree_with_counts", scanned_with=9),
    ],
    "sticky_reference": [
        *without_threshold("sticky_reference", "verdict", lambda row: row["is_shortlisted"]),
        broken(3, "in_set verdict_agrees_with_threshold", verdict="not_sticky"),
        broken(3, "in_set verdict_agrees_with_threshold", verdict=None),
        broken(0, "in_set verdict_agrees_with_threshold", verdict="not_sticky"),
        broken(4, "in_set verdict", "in_set verdict_agrees_with_threshold", verdict="strong"),
        broken(4, "in_set shortlist_has_values", "in_set verdict_agrees_with_threshold", value=None),
        broken(0, "in_set shortlist_has_values", is_shortlisted=True),
        broken(4, "between value", "in_set verdict_agrees_with_threshold", value=1.01),
    ],
    "socm_pair": [
        # Rounding.
        accepted(0, d_mu=-1e-9, socm=(1 + 1e-9) * GOOD["socm_pair"][0]["d_sigma"] + 1e-9),
        accepted(1, d_mu=1 + 1e-9, socm=-1e-9 * GOOD["socm_pair"][1]["d_sigma"] + 1e-9),
        broken(2, "null d_mu", "in_set socm_is_product", d_mu=np.nan),
        broken(2, "between d_mu", "in_set socm_is_product", d_mu=1.01),
        broken(2, "between d_mu", "in_set socm_is_product", d_mu=-0.01),
        broken(5, "greater d_sigma_upper_bound, d_sigma", "in_set socm_is_product", d_sigma=0.73),
        broken(5, *BELOW_ITS_BOUND, d_sigma=0.12),
        broken(5, "greater d_sigma_upper_bound, d_sigma", "in_set socm_is_product", d_sigma=np.inf),
        broken(1, "greater d_sigma_and_tolerance, socm", "in_set socm_is_product", socm=0.9),
        broken(1, "in_set socm_is_product", socm=-0.1),
        broken(0, "null d_sigma_lower_bound", second=44),
        broken(0, "null d_sigma_lower_bound", corpus="no such"),
    ],
    "socm_text": [
        broken(1, "in_set undefined_has_no_trace", trace_sigma=None),
        broken(1, "in_set undefined_has_no_trace", is_undefined=True),
        broken(2, "in_set flag_agrees_with_trace", exceeds_trace_bound=False),
    ],
    "socm_listed_pair": [
        broken(0, *BELOW_ITS_BOUND, d_sigma=0.0, socm=0.3),
        broken(1, "null d_mu", "in_set socm_is_product", d_mu=np.nan),
        broken(1, "greater d_sigma_upper_bound, d_sigma", "in_set socm_is_product", d_sigma=9.0),
        broken(1, "in_set socm_is_product", socm=0.0),
        broken(1, "null d_sigma_lower_bound", second=44),
    ],
    "socm_contrast": [broken(0, "in_set difference_is_of_means", listed_mean=0.4)],
    "socm_tightness": [broken(1, "greater w2_squared_and_tolerance, gaussian_w2_squared", w2_squared=0.1)],
    "layer_text": [broken(0, "in_set theorem_1_holds", normalised_spread=9.0)],
    "weight": [
        accepted(3),
        broken(0, "in_set read_tensors_have_values", file=None),
    ],
    "quality": [
        accepted(1),
        broken(1, "in_set only_pairs_have_a_scale", auc=0.9),
        broken(1, "in_set only_pairs_have_a_scale", threshold=0.7),
    ],
    "verdict": [
        broken(0, "in_set only_problems_have_a_cause", "in_set kind", cause="untrained_layers"),
        broken(0, "in_set only_problems_have_a_cause", kind="do not serve"),
    ],
    "geometry": [
        accepted(1, mean_cosine=None, texts=1, truncated=0, effective_rank=None, rankme=None),
        broken(0, "in_set pairs_have_a_mean", mean_cosine=None),
        broken(0, "in_set variance_shares_ascend", variance_3=0.9, variance_3_high=0.9),
        broken(0, "in_set ranks_fit_texts_and_dimension", effective_rank=33.0, effective_rank_high=34.0),
        broken(1, "in_set ranks_fit_texts_and_dimension", rankme=16.0, rankme_high=17.0),
    ],
    "surface": [
        broken(0, "in_set figures_need_queries", moved=None),
        broken(2, "in_set figures_need_queries", moved=0.1),
    ],
    "attractor_summary": [broken(0, "in_set a_hub_needs_documents", documents=20)],
    "position": [broken(0, "in_set only_what_is_read_has_a_score", is_read=False)],
    "compression": [
        broken(0, "in_set cuts_have_a_control", random_recall=None),
        broken(7, "in_set float32_loses_nothing", recall=0.9),
    ],
    "quality_wording": [
        broken(1, "in_set the_declared_wording_changes_nothing", change=0.1, change_low=0.05, change_high=0.15),
    ],
    "language": [
        broken(0, "in_set translations_have_chances", chance=None),
        broken(0, "in_set own_bias_is_a_difference", other_above=0.8),
        broken(
            0,
            "in_set english_is_not_beside_itself",
            english_above=None,
            english_above_low=None,
            english_above_high=None,
        ),
        broken(0, "in_set same_ids_are_not_told_apart", empty=1),
    ],
    "occurrence_corpus": [
        broken(0, "in_set share_agrees_with_counts", severe_share=0.08),
        broken(0, "greater texts, severe_texts", "in_set share_agrees_with_counts", texts=2),
        broken(0, "in_set excess_is_a_difference", ordinary_moved=0.03),
        broken(0, "in_set movement_needs_a_text", removal_texts=0),
    ],
    "occurrence": [
        broken(1, "in_set movement_needs_a_text", removal_texts=1),
        broken(1, "in_set occurrences_are_in_texts", occurrences=1),
        broken(0, "between moved", "in_set excess_is_a_difference", moved=2.1, moved_high=2.2),
    ],
    "impact": [
        # The first is the worst arm in all documents, the last the clean one.
        accepted(0, change=None, change_low=None, change_high=None, beyond=None, beyond_low=None, beyond_high=None),
        broken(4, "in_set only_clean_has_no_copies", change=0.0),
        broken(0, "in_set only_clean_has_no_copies", poisoned="none"),
        broken(1, "in_set ordinary_tokens_are_the_comparison", beyond=0.0),
        broken(0, "in_set texts_hold_copies", tokens=0),
        broken(4, "in_set texts_hold_copies", copies=1.0),
    ],
    "impact_data_set": [
        broken(0, "in_set only_clean_has_no_copies", poisoned="none"),
        broken(1, "in_set ordinary_tokens_are_the_comparison", beyond=0.0),
    ],
    "impact_token": [
        broken(
            0,
            *("in_set only_clean_has_no_copies", "in_set tokens_are_in_texts"),
            "in_set ordinary_tokens_are_the_comparison",
            arm="clean",
        ),
    ],
    "impact_query": [
        broken(0, "in_set nothing_found_is_nothing_gained", recall_10=0.0),
        broken(1, "between ndcg_10", "in_set nothing_found_is_nothing_gained", ndcg_10=1.1),
    ],
    "mitigation": [
        # The last is without a remedy; stripping changes three texts.
        accepted(3, clean=None),
        broken(3, "in_set none_changes_nothing", touched=1),
        broken(
            3, "in_set none_changes_nothing", poisoned_change=0.0, poisoned_change_low=0.0, poisoned_change_high=0.0
        ),
        broken(1, "in_set untouched_texts_cost_nothing", touched=0, clean_change=0.01, clean_change_high=0.02),
    ],
    "mitigation_loss": [
        broken(1, "in_set change_is_from_none", change=None, change_low=None, change_high=None),
        broken(1, "in_set share_agrees_with_counts", lossy=5),
    ],
    "placement": [
        # suffix and greedy, severe and ordinary, then rotation, whose ordinary tokens are the unit.
        broken(5, "in_set change_is_from_rotation", change=0.0, change_low=-0.01, change_high=0.01),
        broken(0, "in_set change_is_from_rotation", change=None, change_low=None, change_high=None),
        broken(5, "in_set ordinary_in_rotation_is_the_unit", loss=0.1),
        broken(2, "in_set within_budget", copies=9.0),
    ],
    "placement_token": [broken(0, "in_set change_is_from_rotation", change=None, change_low=None, change_high=None)],
    "mitigation_token": [broken(0, "in_set change_is_from_none", change=None, change_low=None, change_high=None)],
    "tempscale": [
        broken(2, "in_set only_other_arms_have_differences", difference=0.1),
        broken(2, "in_set only_other_arms_have_differences", tau=0.9),
    ],
    "tempscale_choice": [
        broken(1, "in_set recommendation_agrees_with_interval", low=-0.1),
        broken(0, "in_set recommendation_agrees_with_interval", recommendation="yes"),
        broken(0, "in_set recommendation_agrees_with_interval", recommendation="unsupported"),
        broken(0, "greater high, difference", "in_set difference_is_of_the_scores", difference=0.5),
    ],
    "tempscale_search": [
        broken(1, "in_set recommended_where_better_than_both", recommendation="yes"),
        broken(0, "in_set recommended_where_better_than_both", low=-0.1),
        broken(0, "in_set differences_are_of_the_scores", score_single=0.3),
        broken(0, "in_set differences_are_of_the_scores", score_before=0.3),
    ],
    "length_bin": [
        broken(1, "in_set mean_needs_two_texts", cosine_mean=0.2),
        broken(2, "in_set mean_needs_two_texts", texts=1),
    ],
    "length_rise": [
        broken(1, "in_set rise_is_difference_of_ends", rise=0.5),
        broken(1, "in_set rise_is_difference_of_ends", rise=None),
        broken(0, "between last_cosine", "in_set rise_is_difference_of_ends", last_cosine=1.5),
        broken(0, "in_set rise_is_difference_of_ends", rise=9.0),
    ],
    "length_ranking": [broken(0, "in_set difference_is_of_shares", by_short=0.4)],
    "length_sigma": [broken(1, "greater frobenius_and_tolerance, sigma_a", sigma_a=1.6)],
    "watched_revision": [
        broken(0, "in_set done_rows_have_audit", audit_id=None),
        broken(1, "in_set done_rows_have_audit", status="audited"),
        broken(2, "in_set status", "in_set done_rows_have_audit", status="seen"),
        broken(2, "in_set times_are_in_order", last_seen=EARLY),
    ],
    "watch_run": [broken(1, "in_set a_run_without_problems_is_completed", state="Completed")],
    "answer": [
        broken(1, "in_set only_the_ok_ends_well", exit_code=0),
        broken(1, "in_set only_what_has_content_is_reused", content_key=None, computed_id="s1"),
        accepted(0, exit_code=1),
    ],
    "index_change": [broken(0, "in_set audits_are_two", audit_id="a9", predecessor_audit_id="a9")],
    "regression": [
        broken(1, "in_set delta_is_difference", delta=0.2),
        broken(0, "in_set worse_is_beyond_tolerance", is_worse=False),
        broken(2, "in_set worse_is_beyond_tolerance", is_worse=True),
        broken(3, "in_set audits_differ", audit_id="a4", predecessor_audit_id="a4"),
    ],
    "gate_result": [
        broken(0, "in_set outcome_agrees_with_limits", value=0.45),
        broken(1, "in_set outcome_agrees_with_limits", "in_set tripping_rows_have_failed", outcome="tripped"),
        broken(0, "in_set tripping_rows_have_failed", trips=False),
        broken(1, "in_set tripping_rows_have_failed", trips=True),
    ],
    "finding": [
        broken(0, "in_set values_lie_in_intervals", value=0.7),
        broken(0, "in_set values_lie_in_intervals", value=None),
        broken(0, "in_set values_lie_in_intervals", high=None),
    ],
    "corpus": [
        broken(1, "in_set counts_add_up", broken=2),
        broken(1, "between kept", "in_set counts_add_up", kept=0),
    ],
}
