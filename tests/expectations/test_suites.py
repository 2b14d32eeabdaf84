"""Every suite: a good table passes, and a table broken in one way fails that expectation, naming the row."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plausible import SCHEMAS, plausible_rows, stage_all
from plausible_socm import TRACES, socm_pairs

from embaudit.errors import StorageError
from embaudit.expectations.check import ALL_SHARDS, EXAMPLES_KEPT, check_frame, check_tables, derived
from embaudit.expectations.rules import ABOVE, AT_LEAST, MEMBERS, MUST_HOLD, RANGES, REQUIRED
from embaudit.expectations.suites import WARNINGS
from embaudit.warehouse.publish import ExpectationRow, StagedTable
from embaudit.warehouse.stage import write_columns
from embaudit.warehouse.tables import TABLES

EARLY = pd.Timestamp("2026-01-01", tz="UTC")
Break = Callable[[pd.DataFrame], pd.DataFrame]


def good(table: str) -> pd.DataFrame:
    return pd.DataFrame(plausible_rows()[table])


def check(table: str, frame: pd.DataFrame, planned: int | None = None) -> list[ExpectationRow]:
    traces = {"wikipedia": pd.Series(TRACES)}
    return check_frame(table, derived(table, frame, traces), planned)


def failures(results: list[ExpectationRow]) -> list[ExpectationRow]:
    return [row for row in results if not row.success]


def put(column: str, row: int, value: Any) -> Break:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        changed = frame.astype({column: object})
        changed.loc[row, column] = value
        is_number = all(isinstance(item, (int, float)) or item is None for item in changed[column])
        return changed.astype({column: float}) if is_number and column != "verdict" else changed

    return change


def doubled(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.iloc[[-1]]], ignore_index=True)


@pytest.mark.parametrize("table", TABLES)
def test_a_good_table_passes(table: str) -> None:
    results = check(table, good(table), planned=len(good(table)))
    assert failures(results) == []
    assert not any(row.raised_exception for row in results)
    assert all(row.severity in ("critical", "warning") for row in results)


@pytest.mark.parametrize("table", TABLES)
def test_duplicate_keys_fail_and_are_named(table: str) -> None:
    (failed,) = [row for row in failures(check(table, doubled(good(table)))) if "unique" in row.expectation]
    keys = TABLES[table].keys
    assert failed.blocks
    assert failed.unexpected_count == 2
    assert failed.column_name == ", ".join(keys)
    assert failed.examples[0] == good(table).iloc[-1][list(keys)].to_dict()
    assert json.loads(json.dumps([failed.kwargs, failed.examples], default=int)) == [failed.kwargs, failed.examples]
    assert "batch_id" not in failed.kwargs


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_null_keys_fail(table: str) -> None:
    keys = TABLES[table].keys
    frame = good(table)
    for key in keys:
        frame = put(key, 0, None)(frame)
    failed = {row.column_name: row for row in failures(check(table, frame)) if "not_be_null" in row.expectation}
    assert set(keys) <= set(failed)
    for key in keys:
        assert failed[key].blocks
        assert failed[key].examples[0] == dict.fromkeys((*keys, key))
        assert not failed[key].raised_exception


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_an_empty_table_fails_by_its_row_count(table: str) -> None:
    failed = failures(check(table, good(table).iloc[:0]))
    assert [row.expectation for row in failed] == ["expect_table_row_count_to_be_between"]
    assert failed[0].blocks


@pytest.mark.parametrize("planned", [0, 1, 99])
def test_another_row_count_than_planned_fails(planned: int) -> None:
    (failed,) = failures(check("socm_text", good("socm_text"), planned))
    assert (failed.expectation, failed.observed) == ("expect_table_row_count_to_equal", "4")
    assert failed.blocks
    assert not failed.raised_exception


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_column_is_an_exception_and_not_a_verdict(table: str) -> None:
    column = (*REQUIRED[table], *TABLES[table].keys)[0]
    failed = failures(check(table, good(table).drop(columns=column)))
    own = [row for row in failed if column in row.column_name]
    assert own
    assert all(row.raised_exception and row.blocks for row in own if row.severity == "critical")
    assert all(column in (row.observed or "") for row in own)
    assert all(row.examples == [] for row in own)


BROKEN: list[tuple[str, Break, str, str, dict[str, Any]]] = [
    # table, how it is broken, expectation, column, the row that is named
    ("watched_revision", put("audit_id", 0, None), "in_set", "what_is_done_has_its_audit", {"revision": "c1"}),
    ("watched_revision", put("status", 1, "audited"), "in_set", "what_is_done_has_its_audit", {"revision": ""}),
    ("watched_revision", put("status", 2, "seen"), "in_set", "status", {"revision": "c2"}),
    ("watched_revision", put("last_seen", 2, EARLY), "in_set", "times_are_in_order", {"revision": "c2"}),
    ("regression", put("delta", 1, 0.2), "in_set", "delta_is_of_its_values", {"measure": "socm_max"}),
    ("regression", put("is_worse", 0, False), "in_set", "worse_is_beyond_tolerance", {"measure": "socm_mean"}),
    ("regression", put("is_worse", 2, True), "in_set", "worse_is_beyond_tolerance", {"measure": "normalised_spread"}),
    ("regression", put("predecessor_audit_id", 3, "a3"), "in_set", "audits_are_two", {"measure": "sticky"}),
    ("regression", put("tolerance", 0, -0.1), "between", "tolerance", {"measure": "socm_mean"}),
    ("socm_pair", put("d_mu", 2, np.nan), "not_be_null", "d_mu", {"first": 0, "second": 3}),
    ("socm_pair", put("d_mu", 2, 1.01), "between", "d_mu", {"first": 0, "second": 3, "d_mu": 1.01}),
    ("socm_pair", put("d_mu", 2, -0.01), "between", "d_mu", {"first": 0, "second": 3}),
    ("socm_pair", put("d_sigma", 5, 0.73), "greater_than", "d_sigma_upper_bound, d_sigma", {"first": 2, "second": 3}),
    ("socm_pair", put("d_sigma", 5, 0.12), "greater_than", "d_sigma, d_sigma_lower_bound", {"first": 2, "second": 3}),
    ("socm_pair", put("d_sigma", 5, np.inf), "greater_than", "d_sigma_upper_bound, d_sigma", {"first": 2}),
    ("socm_pair", put("socm", 1, 0.9), "greater_than", "d_sigma_and_tolerance, socm", {"first": 0, "second": 2}),
    ("socm_pair", put("socm", 1, -0.1), "in_set", "socm_is_product", {"first": 0, "second": 2}),
    ("socm_pair", put("first", 0, 1), "greater_than", "second, first", {"first": 1, "second": 1}),
    ("socm_pair", put("second", 0, 44), "not_be_null", "d_sigma_lower_bound", {"first": 0, "second": 44}),
    ("socm_pair", put("corpus", 0, "no such"), "not_be_null", "d_sigma_lower_bound", {"corpus": "no such"}),
    ("socm_text", put("trace_sigma", 1, -0.1), "between", "trace_sigma", {"corpus": "wikipedia", "position": 1}),
    ("socm_text", put("tokens", 1, 0), "between", "tokens", {"position": 1}),
    ("socm_text", put("trace_sigma", 1, None), "in_set", "undefined_has_no_trace", {"position": 1}),
    ("socm_text", put("is_undefined", 1, True), "in_set", "undefined_has_no_trace", {"position": 1}),
    ("socm_text", put("exceeds_trace_bound", 2, False), "in_set", "flag_agrees_with_trace", {"position": 2}),
    ("socm_text", put("mean_cosine", 1, 1.1), "between", "mean_cosine", {"position": 1}),
    ("socm_listed_pair", put("d_mu", 1, np.nan), "not_be_null", "d_mu", {"position": 1}),
    ("socm_listed_pair", put("d_sigma", 1, 9.0), "greater_than", "d_sigma_upper_bound, d_sigma", {"position": 1}),
    ("socm_listed_pair", put("socm", 1, 0.0), "in_set", "socm_is_product", {"position": 1}),
    ("socm_listed_pair", put("second", 1, 44), "not_be_null", "d_sigma_lower_bound", {"position": 1}),
    ("socm_surface", put("socm_mean", 1, -0.1), "between", "socm_mean", {"alpha": 0.0, "beta": 1.0}),
    (
        "socm_tightness",
        put("w2_squared", 1, 0.1),
        "greater_than",
        "w2_squared_and_tolerance, gaussian_w2_squared",
        {"first": 0, "second": 2},
    ),
    ("socm_tightness", put("d_mu_sif", 1, 1.1), "between", "d_mu_sif", {"first": 0, "second": 2}),
    ("socm_tightness", put("second", 0, 0), "greater_than", "second, first", {"first": 0, "second": 0}),
    ("socm_summary", put("socm_q05", 0, 0.0), "greater_than", "socm_q05, socm_q01", {"corpus": "wikipedia"}),
    ("socm_summary", put("pair_kind", 0, "some"), "in_set", "pair_kind", {"corpus": "wikipedia"}),
    ("socm_summary", put("undefined", 0, -1), "between", "undefined", {"corpus": "wikipedia"}),
    ("socm_summary", put("texts", 0, 1), "between", "texts", {"corpus": "wikipedia", "texts": 1}),
    ("socm_summary", put("socm_mean", 0, 0.9), "greater_than", "socm_max, socm_mean", {"corpus": "wikipedia"}),
    ("socm_summary", put("socm_mean", 0, np.nan), "not_be_null", "socm_mean", {"corpus": "wikipedia"}),
    ("layer_text", put("spread_x", 0, -1.0), "between", "spread_x", {"position": 0, "layer": 0}),
    ("layer_text", put("normalised_spread", 0, 9.0), "in_set", "theorem_1_holds", {"position": 0, "layer": 0}),
    ("layer_text", put("lambda_head_max", 1, 0.1), "greater_than", "lambda_head_max, lambda_head_mean", {"layer": 1}),
    ("layer_text", put("tokens", 1, 1), "between", "tokens", {"position": 0, "layer": 1}),
    ("layer_stat", put("holds_contraction", 1, 0.99), "between", "holds_contraction", {"layer": 1}),
    ("layer_stat", put("r_low", 1, 1.5), "greater_than", "r, r_low", {"layer": 1}),
    ("layer_stat", put("norm_placement", 1, "none"), "in_set", "norm_placement", {"layer": 1}),
    ("layer_head_stat", put("sigma_a_max", 2, 0.1), "greater_than", "sigma_a_max, sigma_a", {"layer": 1, "head": 0}),
    ("tempscale", put("difference", 2, 0.1), "in_set", "only_other_arms_have_differences", {"arm": "none", "bin": 1}),
    ("tempscale", put("tau", 2, 0.9), "in_set", "only_other_arms_have_differences", {"arm": "none", "tau": 0.9}),
    ("tempscale", put("score", 1, 1.1), "between", "score", {"arm": "temperature", "split": "choose"}),
    ("tempscale", put("units", 0, 31), "greater_than", "items, units", {"arm": "temperature", "split": "report"}),
    ("tempscale", put("low", 0, 0.2), "greater_than", "high, low", {"arm": "temperature", "split": "report"}),
    ("tempscale", put("arm", 4, "prayer"), "in_set", "arm", {"arm": "prayer"}),
    ("tempscale_choice", put("low", 1, -0.1), "in_set", "recommendation_agrees_with_interval", {"bin": 0}),
    ("tempscale_choice", put("recommendation", 0, "yes"), "in_set", "recommendation_agrees_with_interval", {"bin": 1}),
    ("tempscale_choice", put("recommendation", 0, "unsupported"), "in_set", "recommendation_agrees_with_interval", {}),
    ("tempscale_choice", put("difference", 0, 0.5), "in_set", "difference_is_of_the_scores", {"bin": 1}),
    ("tempscale_choice", put("tau", 0, 0.0), "between", "tau", {"bin": 1}),
    ("gate_result", put("value", 0, 0.45), "in_set", "outcome_agrees_with_limits", {"rule": "no strong change"}),
    ("gate_result", put("outcome", 1, "tripped"), "in_set", "outcome_agrees_with_limits", {"rule": "few bad tokens"}),
    ("gate_result", put("trips", 0, False), "in_set", "what_trips_has_failed", {"rule": "no strong change"}),
    ("gate_result", put("trips", 1, True), "in_set", "what_trips_has_failed", {"rule": "few bad tokens"}),
    ("gate_result", put("kind", 0, "wish"), "in_set", "kind", {"rule": "no strong change"}),
    ("gate_result", put("highest", 0, 0.3), "greater_than", "highest, lowest", {"rule": "no strong change"}),
    ("length_bin", put("cosine_mean", 1, 0.2), "in_set", "mean_needs_two_texts", {"condition": "natural", "low": 20}),
    ("length_bin", put("texts", 2, 1), "in_set", "mean_needs_two_texts", {"condition": "natural", "low": 40}),
    ("length_bin", put("cosine_low", 2, 0.4), "greater_than", "cosine_mean, cosine_low", {"low": 40}),
    ("length_bin", put("condition", 2, "nothing"), "in_set", "condition", {"low": 40}),
    ("length_rise", put("rise", 1, 0.5), "in_set", "rise_is_of_its_ends", {"condition": "windows"}),
    ("length_rise", put("rise", 1, None), "in_set", "rise_is_of_its_ends", {"condition": "windows"}),
    ("length_summary", put("beyond_read", 0, 99), "greater_than", "texts, beyond_read", {"corpus": "wikipedia"}),
    ("length_summary", put("rank_spearman", 0, -1.1), "between", "rank_spearman", {"corpus": "wikipedia"}),
    ("length_pair", put("second", 1, 0), "greater_than", "second, first", {"rank": 2}),
    ("length_pair", put("cosine", 1, 1.1), "between", "cosine", {"rank": 2}),
    (
        "length_sigma",
        put("sigma_a", 1, 1.6),
        "greater_than",
        "frobenius_and_tolerance, sigma_a",
        {"layer": 0, "head": 1, "length": 16},
    ),
    ("length_sigma", put("hc_energy", 1, 1.1), "between", "hc_energy", {"head": 1, "length": 16}),
    ("length_sigma", put("holds", 1, 1.1), "between", "holds", {"head": 1, "length": 16}),
    ("length_rise", put("last_cosine", 0, 1.5), "between", "last_cosine", {"corpus": "wikipedia"}),
    ("length_rise", put("rise", 0, 9.0), "in_set", "rise_is_of_its_ends", {"corpus": "wikipedia"}),
    ("socm_plane", put("share", 1, 1.1), "between", "share", {"position": 0, "point": 0}),
    ("socm_plane", put("pair", 1, "nicest"), "in_set", "pair", {"pair": "nicest", "point": 0}),
    ("layer_head_stat", put("lambda_mean", 2, -0.1), "between", "lambda_mean", {"layer": 1, "head": 0}),
    ("sticky_score", put("pull_rank", 3, 99), "in_set", "ranks_are_complete", {"token_id": 3}),
    ("sticky_score", put("slope_rank", 3, 1), "in_set", "ranks_are_complete", {"token_id": 3}),
    ("sticky_score", put("slope_rank", 3, None), "in_set", "ranks_are_complete", {"token_id": 3}),
    ("sticky_score", put("pull", 3, 1.2), "between", "pull", {"token_id": 3, "pull": 1.2}),
    ("sticky_score", put("draws", 3, 0), "between", "draws", {"token_id": 3}),
    ("sticky_validation", put("verdict", 0, "not_sticky"), "in_set", "verdict_agrees_with_threshold", {"token_id": 4}),
    ("sticky_validation", put("verdict", 1, None), "in_set", "verdict_agrees_with_threshold", {"token_id": 4}),
    ("sticky_validation", put("threshold", 1, None), "in_set", "verdict_agrees_with_threshold", {"token_id": 4}),
    ("sticky_validation", put("verdict", 6, "not_sticky"), "in_set", "verdict_agrees_with_threshold", {"token_id": 0}),
    ("sticky_validation", put("severity", 1, "weak"), "in_set", "severity_agrees_with_loss", {"token_id": 4}),
    ("sticky_validation", put("severity", 1, "awful"), "in_set", "severity", {"severity": "awful"}),
    ("sticky_validation", put("protocol", 1, "guess"), "in_set", "protocol", {"protocol": "guess"}),
    ("sticky_validation", put("loss_high", 2, -9.0), "greater_than", "loss_high, loss_low", {"token_id": 5}),
    ("sticky_validation", put("rho", 2, 2.1), "between", "rho", {"token_id": 5, "protocol": "definition"}),
    ("sticky_validation", put("q_value", 0, 0.0005), "greater_than", "q_value, p_value", {"token_id": 4}),
    ("sticky_validation", put("p_value", 2, 1.01), "between", "p_value", {"token_id": 5, "p_value": 1.01}),
    ("sticky_validation", put("near_u_05", 2, 0.6), "greater_than", "near_u_10, near_u_05", {"token_id": 5}),
    ("sticky_validation", put("shift", 2, -2.1), "between", "shift", {"token_id": 5, "shift": -2.1}),
    ("sticky_validation", put("compression", 2, 0.39), "in_set", "slope_within_compression", {"token_id": 5}),
    ("sticky_validation", put("role", 2, "sticky"), "in_set", "role", {"token_id": 5, "role": "sticky"}),
    ("sticky_score", put("is_pilot", 3, None), "not_be_null", "is_pilot", {"token_id": 3}),
    ("sticky_summary", put("search", 0, "greedy"), "in_set", "search", {"search": "greedy"}),
    ("sticky_summary", put("search", 0, None), "not_be_null", "search", {"protocol": "definition"}),
    ("sticky_summary", put("miss_high", 0, -0.1), "greater_than", "miss_high, miss_rate", {"protocol": "definition"}),
    ("sticky_summary", put("miss_low", 1, 0.5), "greater_than", "miss_rate, miss_low", {"protocol": "retention"}),
    ("sticky_summary", put("miss_rate", 0, 0.5), "in_set", "miss_rate_agrees_with_counts", {"protocol": "definition"}),
    ("sticky_summary", put("miss_high", 0, None), "in_set", "miss_rate_agrees_with_counts", {"protocol": "definition"}),
    ("sticky_summary", put("pilot_missed", 0, 2), "greater_than", "pilot_shortlisted, pilot_missed", {}),
    ("sticky_summary", put("rank_correlation", 1, 1.1), "between", "rank_correlation", {"protocol": "retention"}),
    ("sticky_dose", put("role", 1, "sticky"), "in_set", "role", {"token_id": 0, "copies": 1, "role": "sticky"}),
    ("sticky_dose", put("copies", 1, 0), "between", "copies", {"token_id": 0, "copies": 0}),
    ("sticky_dose", put("pull", 1, 1.1), "between", "pull", {"token_id": 0, "pull": 1.1}),
    ("sticky_dose", put("slope", 1, None), "not_be_null", "slope", {"token_id": 0, "copies": 1}),
    ("sticky_shift", put("role", 1, "control"), "in_set", "role", {"token_id": 4, "position": 1}),
    ("sticky_shift", put("after", 1, -1.1), "between", "after", {"token_id": 4, "position": 1, "after": -1.1}),
    ("sticky_shift", put("before", 1, 0.3), "in_set", "pairs_are_the_same", {"token_id": 0, "position": 1}),
    ("sticky_shift", lambda frame: frame.drop(index=5), "in_set", "pairs_are_the_same", {"token_id": 4, "position": 2}),
    ("sticky_attention", put("wasserstein", 1, -0.01), "between", "wasserstein", {"layer": 1}),
    ("sticky_attention", put("wasserstein", 1, 1.01), "between", "wasserstein", {"layer": 1}),
    ("sticky_attention", put("sticky_q95", 1, 1.01), "between", "sticky_q95", {"layer": 1, "includes_special": True}),
    ("sticky_attention", put("ordinary_q25", 2, 0.9), "greater_than", "ordinary_q50, ordinary_q25", {"layer": 0}),
    ("sticky_attention", put("permuted_low", 2, 0.9), "greater_than", "permuted_high, permuted_low", {"layer": 0}),
    ("sticky_attention", put("p_value", 2, 1.01), "between", "p_value", {"includes_special": False}),
    ("sticky_attention", put("sentences", 2, 0), "between", "sentences", {"sentences": 0}),
    ("sticky_enrichment", put("fold", 6, -1.0), "between", "fold", {"attribute": "script", "value": "Han"}),
    ("sticky_enrichment", put("fold", 6, 7.0), "in_set", "shares_agree_with_counts", {"value": "Han"}),
    ("sticky_enrichment", put("share_scanned", 6, None), "in_set", "shares_agree_with_counts", {"value": "Han"}),
    ("sticky_enrichment", put("q_value", 6, 0.1), "greater_than", "q_value, p_value", {"value": "Han"}),
    ("sticky_enrichment", put("p_value", 6, 1.01), "between", "p_value", {"value": "Han", "p_value": 1.01}),
    ("sticky_enrichment", put("odds_ratio", 5, -0.1), "between", "odds_ratio", {"value": "Common"}),
    ("sticky_enrichment", put("auc", 9, 1.01), "between", "auc", {"attribute": "embedding_norm", "value": ""}),
    ("sticky_enrichment", put("selected_with", 6, 2), "greater_than", "selected, selected_with", {"value": "Han"}),
    ("sticky_enrichment", put("scanned_with", 6, 0), "greater_than", "scanned_with, selected_with", {"value": "Han"}),
    ("sticky_enrichment", put("scanned_with", 6, 9), "greater_than", "scanned, scanned_with", {"value": "Han"}),
    ("sticky_reference", put("verdict", 3, "not_sticky"), "in_set", "verdict_agrees_with_threshold", {"token_id": 4}),
    ("sticky_reference", put("verdict", 3, None), "in_set", "verdict_agrees_with_threshold", {"token_id": 4}),
    ("sticky_reference", put("verdict", 0, "not_sticky"), "in_set", "verdict_agrees_with_threshold", {"token_id": 0}),
    ("sticky_reference", put("verdict", 4, "strong"), "in_set", "verdict", {"token_id": 5, "verdict": "strong"}),
    ("sticky_reference", put("value", 4, None), "in_set", "shortlist_has_values", {"token_id": 5}),
    ("sticky_reference", put("is_shortlisted", 0, True), "in_set", "shortlist_has_values", {"token_id": 0}),
    ("sticky_reference", put("score_rank", 0, 6), "in_set", "ranks_are_complete", {"token_id": 0}),
    ("sticky_reference", put("value", 4, 1.01), "between", "value", {"token_id": 5, "value": 1.01}),
    ("sticky_reference", put("score", 0, -0.1), "between", "score", {"token_id": 0, "score": -0.1}),
    ("sticky_reference_summary", put("protocol", 0, "retention"), "in_set", "protocol", {"protocol": "retention"}),
    ("sticky_reference_summary", put("candidates", 0, 8), "greater_than", "scanned, candidates", {}),
    ("sticky_reference_summary", put("u", 0, 1.1), "between", "u", {"protocol": "reference", "u": 1.1}),
    ("sticky_summary", put("u", 0, 1.1), "between", "u", {"protocol": "definition", "u": 1.1}),
    ("sticky_summary", put("pairs_below_u", 0, 0), "between", "pairs_below_u", {"protocol": "definition"}),
    ("sticky_pair", put("similarity", 4, 1.5), "between", "similarity", {"purpose": "validation", "position": 1}),
    ("sticky_pair", put("purpose", 4, "fun"), "in_set", "purpose", {"purpose": "fun", "position": 1}),
    ("token", put("category", 5, "strange"), "in_set", "category", {"checkpoint_id": "c1", "token_id": 5}),
    ("token", put("embedding_norm", 5, -1.0), "between", "embedding_norm", {"token_id": 5}),
    ("token", put("cosine_to_mean", 5, 1.1), "between", "cosine_to_mean", {"token_id": 5}),
    ("corpus", put("broken", 1, 2), "in_set", "counts_add_up", {"corpus_id": "s1", "counts_add_up": False}),
    ("corpus", put("kind", 1, "sounds"), "in_set", "kind", {"corpus_id": "s1", "kind": "sounds"}),
    ("corpus", put("kept", 1, 0), "between", "kept", {"corpus_id": "s1"}),
    ("text", put("position", 3, -1), "between", "position", {"corpus_id": "w1", "position": -1}),
    ("text", put("text", 3, None), "not_be_null", "text", {"corpus_id": "w1", "position": 3, "text": None}),
    ("text_pair", put("position", 1, -1), "between", "position", {"corpus_id": "s1", "position": -1}),
    ("checkpoint", put("max_length", 0, 0), "between", "max_length", {"checkpoint_id": "c1"}),
]


@pytest.mark.parametrize(
    ("table", "change", "expectation", "column", "row"),
    BROKEN,
    ids=[f"{table}-{column}-{i}" for i, (table, _, _, column, _) in enumerate(BROKEN)],
)
def test_a_broken_row_fails_its_expectation_and_is_named(
    table: str, change: Break, expectation: str, column: str, row: dict[str, Any]
) -> None:
    failed = [
        one
        for one in failures(check(table, change(good(table))))
        if expectation in one.expectation and one.column_name == column
    ]
    assert len(failed) == 1
    assert failed[0].blocks
    assert not failed[0].raised_exception
    assert failed[0].unexpected_count in (1, 2)  # two tokens share a doubled rank
    assert any(row.items() <= example.items() for example in failed[0].examples), failed[0].examples


def test_every_kind_of_expectation_of_every_table_is_broken_above_or_generic() -> None:
    """Ranges and memberships that no test breaks would be decoration."""
    broken = {(table, column) for table, _, _, column, _ in BROKEN}
    for table in TABLES:
        declared = {*RANGES.get(table, {}), *MEMBERS.get(table, {})}
        if declared:
            assert any((table, column) in broken for column in declared), table
        assert all((table, column) in broken for column in MUST_HOLD.get(table, ())), table


def broken_columns(table: str, changes: Mapping[str, Any], expectation: str) -> set[str]:
    """The columns whose expectation of a kind fails, by a critical verdict, once the first row has these values."""
    frame = good(table)
    for column, value in changes.items():
        frame = put(column, 0, value)(frame)
    failed = [row for row in failures(check(table, frame)) if expectation in row.expectation]
    assert all(row.blocks and not row.raised_exception for row in failed if row.severity == "critical")
    return {row.column_name for row in failed if row.blocks}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_every_required_column_fails_where_it_is_null(table: str) -> None:
    staged_columns = [column for column in REQUIRED[table] if column in SCHEMAS[table]]
    assert set(staged_columns) <= broken_columns(table, dict.fromkeys(staged_columns), "not_be_null")


@pytest.mark.slow
@pytest.mark.parametrize("side", [0, 1], ids=["below", "above"])
@pytest.mark.parametrize("table", RANGES)
def test_every_range_fails_beyond_its_ends(table: str, side: int) -> None:
    ends = {column: ends[side] for column, ends in RANGES[table].items()}
    beyond = {column: end + (1 if side else -1) for column, end in ends.items() if end is not None}
    assert set(beyond) <= broken_columns(table, beyond, "between")


@pytest.mark.slow
@pytest.mark.parametrize("table", MEMBERS)
def test_every_membership_fails_for_a_stranger(table: str) -> None:
    assert set(MEMBERS[table]) <= broken_columns(table, dict.fromkeys(MEMBERS[table], "stranger"), "in_set")


ORDERED = [
    (table, *pair)
    for pairs in (AT_LEAST, ABOVE)
    for table in pairs
    for pair in pairs[table]
    if set(pair) <= set(SCHEMAS[table])
]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "larger", "smaller"), ORDERED)
def test_every_order_of_two_columns_fails_when_it_is_turned(table: str, larger: str, smaller: str) -> None:
    less = good(table)[smaller][0] - 1
    assert f"{larger}, {smaller}" in broken_columns(table, {larger: less}, "greater_than")


@pytest.mark.parametrize("table", TABLES)
def test_suites_name_only_columns_that_are_staged_or_derived(table: str) -> None:
    frame = derived(table, good(table), {"wikipedia": pd.Series(TRACES)})
    compared = [column for pairs in (AT_LEAST, ABOVE) for pair in pairs.get(table, ()) for column in pair]
    named = {*REQUIRED[table], *RANGES.get(table, {}), *MEMBERS.get(table, {}), *MUST_HOLD.get(table, ()), *compared}
    assert named <= set(frame.columns)
    assert set(good(table).columns) == set(SCHEMAS[table])


def test_a_search_without_a_pilot_has_no_miss_rate() -> None:
    frame = good("sticky_summary")
    frame[["pilot", "search"]] = 0, "exhaustive"
    frame[["pilot_shortlisted", "pilot_missed", "miss_rate", "miss_low", "miss_high", "rank_correlation"]] = np.nan
    assert failures(check("sticky_summary", frame)) == []
    frame["miss_rate"] = 0.0
    assert {row.column_name for row in failures(check("sticky_summary", frame))} == {"miss_rate_agrees_with_counts"}


def test_a_pilot_off_the_shortlist_has_no_miss_rate() -> None:
    frame = good("sticky_summary")
    frame["pilot_shortlisted"] = 0
    frame[["miss_rate", "miss_low", "miss_high"]] = np.nan
    assert failures(check("sticky_summary", frame)) == []


def test_a_spread_in_float32_passes() -> None:
    frame = good("sticky_validation")
    frame["compression"] = frame["slope"] * (1 - 1e-5)
    frame.loc[0, "compression"] = np.nan  # all similarities before are equal
    assert failures(check("sticky_validation", frame)) == []


def test_the_reference_protocol_without_a_threshold_has_a_verdict_of_its_own() -> None:
    frame = good("sticky_reference")
    frame["threshold"] = np.nan
    frame["verdict"] = np.where(frame["is_shortlisted"], "no_threshold", None)
    assert failures(check("sticky_reference", frame)) == []


def test_float_rounding_passes() -> None:
    pairs = good("socm_pair")
    pairs["d_mu"] = [0.0 - 1e-9, 1.0 + 1e-9, *pairs["d_mu"][2:]]
    pairs["socm"] = (1 - pairs["d_mu"]) * pairs["d_sigma"] + 1e-9
    assert failures(check("socm_pair", pairs)) == []


def test_tolerance_grows_with_the_traces() -> None:
    """A text whose mean is near zero has tr Σ in the thousands, and rounding in proportion."""
    traces = (4e6, 1e6)
    rows = pd.DataFrame(socm_pairs("wikipedia", traces))
    rows["d_sigma"] = sum(traces) / 4 * (1 + 1e-10)
    rows["socm"] = (1 - rows["d_mu"]) * rows["d_sigma"]
    checked = check_frame("socm_pair", derived("socm_pair", rows, {"wikipedia": pd.Series(traces)}), 1)
    assert failures(checked) == []


@pytest.mark.parametrize("change", [put("threshold", 0, None), put("validation_pairs", 0, 12)])
def test_a_warning_is_recorded_and_does_not_block(change: Break) -> None:
    (failed,) = failures(check("sticky_summary", change(good("sticky_summary"))))
    assert failed.severity == "warning"
    assert not failed.blocks


@pytest.mark.parametrize("change", [put("share_trace_above_bound", 0, 0.99), put("pooling_is_mean", 0, False)])
def test_socm_off_its_ground_is_a_warning(change: Break) -> None:
    frame = change(good("socm_summary"))
    if frame["pooling_is_mean"].dtype == float:
        frame["pooling_is_mean"] = frame["pooling_is_mean"].astype(bool)
    (failed,) = failures(check("socm_summary", frame))
    assert failed.severity == "warning"
    assert set(WARNINGS) == {"sticky_summary", "socm_summary"}


def test_no_threshold_is_a_verdict_of_its_own() -> None:
    frame = good("sticky_validation")
    frame["threshold"] = np.nan
    frame["verdict"] = frame["verdict"].where(frame["role"] == "control", "no_threshold")
    assert failures(check("sticky_validation", frame)) == []


def test_a_million_failing_rows_are_reported_by_a_few(tmp_path: Path) -> None:
    count = 300_000
    frame = pd.DataFrame(
        {
            "corpus": pd.Categorical(["wikipedia"] * count),
            "first": np.arange(count),
            "second": np.arange(count),
            "d_mu": 7.0,
            "d_sigma": 0.5,
            "socm": 0.5,
        }
    )
    failed = failures(check_frame("socm_pair", derived("socm_pair", frame, {}), count))
    assert {row.unexpected_count for row in failed} == {count}
    assert all(len(row.examples) == EXAMPLES_KEPT for row in failed)


# ---- several files together ----


@pytest.fixture
def sharded(tmp_path: Path) -> list[StagedTable]:
    """The SOCM of an audit, with its pairs in three shards of two rows."""
    rows = {name: part for name, part in plausible_rows().items() if name.startswith("socm")}
    pairs = rows.pop("socm_pair")
    shards = [stage_all(tmp_path / f"s{i}", {"socm_pair": pairs[2 * i : 2 * i + 2]})[0].paths[0] for i in range(3)]
    return [*stage_all(tmp_path / "rest", rows), StagedTable("socm_pair", tuple(shards))]


def with_pairs(staged: list[StagedTable], *paths: str) -> list[StagedTable]:
    return [*(table for table in staged if table.table != "socm_pair"), StagedTable("socm_pair", paths)]


def pairs_of(staged: list[StagedTable]) -> tuple[str, ...]:
    return next(table.paths for table in staged if table.table == "socm_pair")


PLAN = {name: len(rows) for name, rows in plausible_rows().items() if name.startswith("socm")}


def test_a_whole_audit_passes_shard_by_shard(sharded: list[StagedTable], tmp_path: Path) -> None:
    others = {name: part for name, part in plausible_rows().items() if not name.startswith("socm")}
    plan = {**PLAN, **{name: len(part) for name, part in others.items()}, "scan": 12, "validation": 3}
    results = check_tables([*stage_all(tmp_path / "others", others), *sharded], plan)
    assert failures(results) == []
    assert {row.shard for row in results if row.table_name == "socm_pair"} == {ALL_SHARDS, 0, 1, 2}
    assert {row.table_name for row in results} == set(TABLES)
    keys = [
        (r.table_name, r.shard, r.expectation, r.column_name, json.dumps(r.kwargs, sort_keys=True)) for r in results
    ]
    assert len(set(keys)) == len(keys), "expectation_result's primary key would merge two results"


def test_a_missing_shard_shows_in_the_row_count(sharded: list[StagedTable]) -> None:
    one, two, _ = pairs_of(sharded)
    (failed,) = failures(check_tables(with_pairs(sharded, one, two), PLAN))
    assert (failed.shard, failed.observed, failed.kwargs) == (ALL_SHARDS, "4", {"value": 6})
    assert failed.blocks


def test_a_shard_in_anothers_place_shows_in_the_keys(sharded: list[StagedTable], tmp_path: Path) -> None:
    one, two, _ = pairs_of(sharded)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(Path(two).read_bytes())
    (failed,) = failures(check_tables(with_pairs(sharded, one, two, str(copy)), PLAN))
    assert (failed.shard, failed.expectation) == (ALL_SHARDS, "expect_compound_columns_to_be_unique")
    assert failed.unexpected_count == 2
    assert failed.examples[0] == {"corpus": "wikipedia", "first": 0, "second": 3}
    assert failed.blocks


def test_a_broken_row_in_a_late_shard_is_named_with_its_shard(sharded: list[StagedTable], tmp_path: Path) -> None:
    bad = plausible_rows()["socm_pair"][4:]
    bad[0]["socm"] = 0.9
    path = stage_all(tmp_path / "bad", {"socm_pair": bad})[0].paths[0]
    failed = failures(check_tables(with_pairs(sharded, *pairs_of(sharded)[:2], path), PLAN))
    assert {row.shard for row in failed} == {2}
    assert all(example["second"] == 3 for row in failed for example in row.examples)


def test_an_empty_shard_fails(sharded: list[StagedTable], tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    write_columns(path, [], SCHEMAS["socm_pair"])
    failed = failures(check_tables(with_pairs(sharded, *pairs_of(sharded), str(path)), PLAN))
    assert [(row.shard, row.expectation) for row in failed] == [(3, "expect_table_row_count_to_be_between")]


def test_a_planned_table_that_nobody_staged_fails(sharded: list[StagedTable]) -> None:
    staged = [table for table in sharded if table.table != "socm_pair"]
    (failed,) = failures(check_tables(staged, PLAN))
    assert (failed.table_name, failed.observed, failed.blocks) == ("socm_pair", "0", True)


def test_pairs_without_their_texts_fail(sharded: list[StagedTable]) -> None:
    staged = [table for table in sharded if table.table != "socm_text"]
    failed = failures(check_tables(staged, {}))
    assert {(row.table_name, row.column_name) for row in failed} == {
        ("socm_pair", "d_sigma_lower_bound"),
        ("socm_listed_pair", "d_sigma_lower_bound"),
    }


def test_two_corpora_have_bounds_of_their_own(tmp_path: Path) -> None:
    rows = plausible_rows()
    scaled = {"corpus": "msmarco", "exceeds_trace_bound": True}
    other = [{**row, **scaled, "trace_sigma": row["trace_sigma"] * 9} for row in rows["socm_text"]]
    texts = [
        stage_all(tmp_path / f"t{i}", {"socm_text": part})[0].paths[0]
        for i, part in enumerate((rows["socm_text"], other))
    ]
    pairs = rows["socm_pair"] + socm_pairs("msmarco", [trace * 9 for trace in TRACES])
    staged = [StagedTable("socm_text", tuple(texts)), *stage_all(tmp_path / "p", {"socm_pair": pairs})]
    assert failures(check_tables(staged, {"socm_text": 8, "socm_pair": 12})) == []
    swapped = [{**row, "corpus": "wikipedia" if row["corpus"] == "msmarco" else "msmarco"} for row in pairs]
    staged[1] = stage_all(tmp_path / "swapped", {"socm_pair": swapped})[0]
    assert failures(check_tables(staged, {}))


def test_null_and_doubled_positions_fail_without_an_accident(tmp_path: Path) -> None:
    rows = plausible_rows()
    rows["socm_text"] += [rows["socm_text"][0], {**rows["socm_text"][1], "position": None}]
    staged = stage_all(tmp_path, {name: rows[name] for name in ("socm_text", "socm_pair")})
    failed = failures(check_tables(staged, {}))
    assert {(row.table_name, row.expectation) for row in failed} == {
        ("socm_text", "expect_compound_columns_to_be_unique"),
        ("socm_text", "expect_column_values_to_not_be_null"),
    }


@pytest.mark.parametrize("table", ["socm_summary", "socm_text", "socm_pair"])
def test_a_missing_or_cut_off_file_is_named(sharded: list[StagedTable], table: str) -> None:
    path = Path(next(one.paths[-1] for one in sharded if one.table == table))
    os.truncate(path, 100)
    with pytest.raises(StorageError, match=rf"{path.name} cannot be read"):
        check_tables(sharded, PLAN)
    path.unlink()
    with pytest.raises(StorageError, match=rf"{path.name} is missing"):
        check_tables(sharded, PLAN)


def test_a_flipped_bit_in_a_number_is_found_by_its_checksum(tmp_path: Path) -> None:
    """Any other double would be a valid number too."""
    path = tmp_path / "socm_text.parquet"
    count = 20_000
    numbers = np.random.default_rng(0).random(count)
    write_columns(
        path,
        [
            {
                **dict.fromkeys(("corpus", "corpus_id"), ["w"] * count),
                **dict.fromkeys(("position", "tokens"), np.arange(count) + 1),
                **dict.fromkeys(("mean_norm", "trace_sigma", "mean_cosine"), numbers),
                **dict.fromkeys(("exceeds_trace_bound", "is_undefined", "is_truncated"), np.zeros(count, dtype=bool)),
            }
        ],
        SCHEMAS["socm_text"],
    )
    content = bytearray(path.read_bytes())
    # The file is mostly the random numbers, and what does not compress lies in it as it is.
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match="cannot be read"):
        check_tables([StagedTable("socm_text", (str(path),))], {})
