"""How the rows of SOCM, layers, length and temperature are broken, and what fails for it."""

from __future__ import annotations

import numpy as np
from broken_rows import GOOD, Broken, accepted, broken

NUMBERS: dict[str, list[Broken]] = {
    "socm_pair": [
        # Rounding.
        accepted(0, d_mu=-1e-9, socm=(1 + 1e-9) * GOOD["socm_pair"][0]["d_sigma"] + 1e-9),
        accepted(1, d_mu=1 + 1e-9, socm=-1e-9 * GOOD["socm_pair"][1]["d_sigma"] + 1e-9),
        broken(2, "null d_mu", "in_set socm_is_product", d_mu=np.nan),
        broken(2, "between d_mu", "in_set socm_is_product", d_mu=1.01),
        broken(2, "between d_mu", "in_set socm_is_product", d_mu=-0.01),
        broken(5, "greater d_sigma_upper_bound, d_sigma", "in_set socm_is_product", d_sigma=0.73),
        broken(
            5,
            "greater d_sigma, d_sigma_lower_bound",
            "greater d_sigma_and_tolerance, socm",
            "in_set socm_is_product",
            d_sigma=0.12,
        ),
        broken(5, "greater d_sigma_upper_bound, d_sigma", "in_set socm_is_product", d_sigma=np.inf),
        broken(1, "greater d_sigma_and_tolerance, socm", "in_set socm_is_product", socm=0.9),
        broken(1, "in_set socm_is_product", socm=-0.1),
        broken(0, "greater second, first", first=1),
        broken(0, "null d_sigma_lower_bound", second=44),
        broken(0, "null d_sigma_lower_bound", corpus="no such"),
    ],
    "socm_text": [
        broken(1, "between trace_sigma", trace_sigma=-0.1),
        broken(1, "between tokens", tokens=0),
        broken(1, "in_set undefined_has_no_trace", trace_sigma=None),
        broken(1, "in_set undefined_has_no_trace", is_undefined=True),
        broken(2, "in_set flag_agrees_with_trace", exceeds_trace_bound=False),
        broken(1, "between mean_cosine", mean_cosine=1.1),
    ],
    "socm_listed_pair": [
        broken(
            0,
            "greater d_sigma, d_sigma_lower_bound",
            "greater d_sigma_and_tolerance, socm",
            "in_set socm_is_product",
            d_sigma=0.0,
            socm=0.3,
        ),
        broken(1, "null d_mu", "in_set socm_is_product", d_mu=np.nan),
        broken(1, "greater d_sigma_upper_bound, d_sigma", "in_set socm_is_product", d_sigma=9.0),
        broken(1, "in_set socm_is_product", socm=0.0),
        broken(1, "null d_sigma_lower_bound", second=44),
    ],
    "socm_cut": [
        broken(0, "between texts", texts=1),
        broken(0, "greater socm_high, socm_mean", socm_mean=0.9),
        broken(1, "between share_trace_above_bound", share_trace_above_bound=1.1),
        broken(1, "between tokens", tokens=0),
    ],
    "socm_length": [
        broken(0, "greater longer, shorter", shorter=16),
        broken(0, "between pairs", pairs=0),
    ],
    "socm_contrast": [
        broken(0, "in_set difference_is_of_means", listed_mean=0.4),
    ],
    "socm_pooling": [
        broken(0, "between texts", texts=1),
        broken(0, "greater kept_high, kept", kept=0.5),
        broken(1, "between kept", kept=1.1, kept_high=1.2),
        broken(1, "between correlation", correlation=1.1, correlation_high=1.2),
        broken(2, "between cosine_to_mean", cosine_to_mean=1.1),
        broken(3, "between pairs", pairs=0),
    ],
    "socm_surface": [
        broken(1, "between socm_mean", socm_mean=-0.1),
    ],
    "socm_tightness": [
        broken(1, "greater w2_squared_and_tolerance, gaussian_w2_squared", w2_squared=0.1),
        broken(1, "between d_mu_sif", d_mu_sif=1.1),
        broken(0, "greater second, first", second=0),
    ],
    "socm_summary": [
        broken(0, "warning between share_trace_above_bound", share_trace_above_bound=0.99),
        broken(0, "warning in_set pooling_is_mean", pooling_is_mean=False),
        broken(0, "warning between accuracy", accuracy=0.01),
        broken(0, "between correlation_trace", correlation_trace=1.1),
        broken(0, "between correlation_length", correlation_length=-1.1),
        broken(0, "greater socm_q05, socm_q01", socm_q05=0.0),
        broken(0, "in_set pair_kind", pair_kind="some"),
        broken(0, "between undefined", undefined=-1),
        broken(0, "between texts", texts=1),
        broken(0, "greater socm_max, socm_mean", "greater socm_high, socm_mean", socm_mean=0.9),
        broken(0, "null socm_mean", socm_mean=np.nan),
    ],
    "layer_text": [
        broken(0, "between spread_x", spread_x=-1.0),
        broken(0, "in_set theorem_1_holds", normalised_spread=9.0),
        broken(1, "greater lambda_head_max, lambda_head_mean", lambda_head_max=0.1),
        broken(1, "between tokens", tokens=1),
    ],
    "layer_stat": [
        broken(1, "between holds_contraction", holds_contraction=0.99),
        broken(1, "greater r, r_low", r_low=1.5),
        broken(1, "in_set norm_placement", norm_placement="none"),
    ],
    "pooled_stat": [
        broken(0, "between within_text_cosine", within_text_cosine=1.1, within_text_cosine_high=1.2),
        broken(0, "greater normalised_spread, normalised_spread_low", normalised_spread_low=1.6),
        broken(0, "null has_final_norm", has_final_norm=None),
    ],
    "layer_head_stat": [
        broken(2, "greater sigma_a_max, sigma_a", sigma_a_max=0.1),
        broken(2, "between lambda_mean", lambda_mean=-0.1),
    ],
    "weight": [
        accepted(3),
        broken(0, "in_set read_tensors_have_values", file=None),
    ],
    "quality": [
        accepted(1),
        broken(1, "in_set only_pairs_have_a_scale", auc=0.9),
        broken(1, "in_set only_pairs_have_a_scale", threshold=0.7),
        broken(0, "greater score, score_low", score_low=0.8),
    ],
    "quality_layer": [broken(0, "greater score_high, score", score_high=0.4)],
    "quality_reading": [broken(0, "greater gain, gain_low", gain_low=0.0)],
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
        broken(0, "greater texts, truncated", truncated=41),
        broken(0, "greater isoscore, isoscore_low", isoscore_low=0.3),
        broken(0, "between uniformity", uniformity=-9.0, uniformity_low=-9.5),
    ],
    "geometry_dimension": [
        broken(1, "between rank", rank=11),
        broken(1, "between mean", mean=1.1),
    ],
    "occurrence_corpus": [
        broken(0, "in_set share_agrees_with_counts", severe_share=0.08),
        broken(0, "greater listed, met", met=3),
        broken(0, "greater texts, severe_texts", "in_set share_agrees_with_counts", texts=2),
        broken(0, "greater severe_texts, dense_texts", dense_texts=4),
        broken(0, "in_set excess_is_a_difference", ordinary_moved=0.03),
        broken(0, "in_set movement_needs_a_text", removal_texts=0),
        broken(0, "greater excess, excess_low", excess_low=0.035),
    ],
    "occurrence": [
        broken(1, "in_set movement_needs_a_text", removal_texts=1),
        broken(1, "in_set occurrences_are_in_texts", occurrences=1),
        broken(0, "greater occurrences, texts", texts=6),
        broken(0, "between less_frequent", less_frequent=1.1),
        broken(0, "between moved", "in_set excess_is_a_difference", moved=2.1, moved_high=2.2),
        broken(0, "in_set severity", severity="terrible"),
    ],
    "occurrence_text": [
        broken(0, "greater tokens, severe", tokens=2),
        broken(0, "between log10_p", log10_p=0.1),
        broken(0, "between severe", severe=1),
    ],
    "impact": [
        # The first is the worst arm in all documents, the last the clean one.
        accepted(0, change=None, change_low=None, change_high=None, beyond=None, beyond_low=None, beyond_high=None),
        broken(4, "in_set only_clean_has_no_copies", change=0.0),
        broken(0, "in_set only_clean_has_no_copies", poisoned="none"),
        broken(1, "in_set ordinary_tokens_are_the_comparison", beyond=0.0),
        broken(0, "in_set texts_hold_copies", tokens=0),
        broken(4, "in_set texts_hold_copies", copies=1.0),
        broken(0, "greater items, units", units=31),
        broken(0, "greater texts, held", held=1184),
        broken(0, "greater held, shortened", shortened=1184),
        broken(0, "greater change, change_low", change_low=0.1),
        broken(0, "between score", score=1.1),
        broken(0, "in_set metric", metric="luck"),
    ],
    "impact_data_set": [
        broken(0, "in_set only_clean_has_no_copies", poisoned="none"),
        broken(1, "in_set ordinary_tokens_are_the_comparison", beyond=0.0),
        broken(0, "greater items, units", units=31),
        broken(0, "greater change, change_low", change_low=0.1),
        broken(0, "in_set arm", arm="prayer"),
    ],
    "impact_token": [
        broken(
            0,
            *("in_set only_clean_has_no_copies", "in_set tokens_are_in_texts"),
            "in_set ordinary_tokens_are_the_comparison",
            arm="clean",
        ),
        broken(0, "greater beyond_high, beyond", beyond_high=-0.5),
        broken(0, "between token_id", token_id=-1),
    ],
    "impact_query": [
        broken(0, "in_set nothing_found_is_nothing_gained", recall_10=0.0),
        broken(1, "between ndcg_10", "in_set nothing_found_is_nothing_gained", ndcg_10=1.1),
        broken(0, "in_set arm", arm="prayer"),
    ],
    "mitigation": [
        # The last is without a remedy; stripping changes three texts.
        accepted(3, clean=None),
        broken(3, "in_set none_changes_nothing", touched=1),
        broken(
            3, "in_set none_changes_nothing", poisoned_change=0.0, poisoned_change_low=0.0, poisoned_change_high=0.0
        ),
        broken(1, "in_set untouched_texts_cost_nothing", touched=0, clean_change=0.01, clean_change_high=0.02),
        broken(1, "greater clean_change, clean_change_low", clean_change_low=0.1, clean_change_high=0.2),
        broken(1, "greater texts, touched", touched=1_201),
    ],
    "mitigation_loss": [
        broken(1, "in_set change_is_from_none", change=None, change_low=None, change_high=None),
        broken(1, "in_set share_agrees_with_counts", lossy=5),
        broken(2, "between fitted_on", fitted_on=1),
    ],
    "placement": [
        # suffix and greedy, severe and ordinary, then rotation, whose ordinary tokens are the unit.
        broken(5, "in_set change_is_from_rotation", change=0.0, change_low=-0.01, change_high=0.01),
        broken(0, "in_set change_is_from_rotation", change=None, change_low=None, change_high=None),
        broken(5, "in_set ordinary_in_rotation_is_the_unit", loss=0.1),
        broken(2, "in_set within_budget", copies=9.0),
        broken(1, "between place", place=1.1),
    ],
    "placement_token": [
        broken(0, "in_set change_is_from_rotation", change=None, change_low=None, change_high=None),
    ],
    "mitigation_token": [
        broken(0, "in_set change_is_from_none", change=None, change_low=None, change_high=None),
    ],
    "tempscale": [
        broken(2, "in_set only_other_arms_have_differences", difference=0.1),
        broken(2, "in_set only_other_arms_have_differences", tau=0.9),
        broken(1, "between score", score=1.1),
        broken(0, "greater items, units", units=31),
        broken(0, "greater difference, low", low=0.2),
        broken(4, "in_set arm", arm="prayer"),
    ],
    "tempscale_choice": [
        broken(1, "in_set recommendation_agrees_with_interval", low=-0.1),
        broken(0, "in_set recommendation_agrees_with_interval", recommendation="yes"),
        broken(0, "in_set recommendation_agrees_with_interval", recommendation="unsupported"),
        broken(0, "greater high, difference", "in_set difference_is_of_the_scores", difference=0.5),
        broken(0, "between tau", tau=0.0),
    ],
    "tempscale_search": [
        broken(1, "in_set recommended_where_better_than_both", recommendation="yes"),
        broken(0, "in_set recommended_where_better_than_both", low=-0.1),
        broken(0, "in_set differences_are_of_the_scores", score_single=0.3),
        broken(0, "in_set differences_are_of_the_scores", score_before=0.3),
        broken(0, "between trials", trials=0),
        broken(0, "in_set part", part="prayer"),
    ],
    "length_bin": [
        broken(1, "in_set mean_needs_two_texts", cosine_mean=0.2),
        broken(2, "in_set mean_needs_two_texts", texts=1),
        broken(2, "greater cosine_mean, cosine_low", cosine_low=0.4),
        broken(2, "in_set condition", condition="nothing"),
    ],
    "length_rise": [
        broken(1, "in_set rise_is_difference_of_ends", rise=0.5),
        broken(1, "in_set rise_is_difference_of_ends", rise=None),
        broken(0, "between last_cosine", "in_set rise_is_difference_of_ends", last_cosine=1.5),
        broken(0, "in_set rise_is_difference_of_ends", rise=9.0),
    ],
    "length_summary": [
        broken(0, "greater texts, beyond_read", beyond_read=99),
        broken(0, "between rank_spearman", rank_spearman=-1.1),
    ],
    "length_pair": [
        broken(1, "greater second, first", second=0),
        broken(1, "between cosine", cosine=1.1),
    ],
    "length_ranking": [
        broken(0, "in_set difference_is_of_shares", by_short=0.4),
        broken(1, "between by_long", by_long=1.1, difference=-0.8, low=-0.9),
        broken(2, "between read", read=0),
        broken(3, "greater pairs, units", units=13),
    ],
    "length_sigma": [
        broken(1, "greater frobenius_and_tolerance, sigma_a", sigma_a=1.6),
        broken(1, "between hc_energy", hc_energy=1.1),
        broken(1, "between holds", holds=1.1),
    ],
    "socm_plane": [
        broken(1, "between share", share=1.1),
        broken(1, "in_set pair", pair="nicest"),
    ],
}
