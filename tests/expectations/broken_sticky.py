"""How the rows of the sticky tables are broken, and what fails for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from broken_rows import GOOD, Broken, accepted, broken

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


STICKY: dict[str, list[Broken]] = {
    "sticky_score": [
        broken(3, "in_set ranks_are_complete", pull_rank=999),
        broken(3, "in_set ranks_are_complete", "null slope_rank", slope_rank=None),
        broken(3, "between pull", pull=1.2),
        broken(3, "between draws", draws=0),
        broken(3, "null is_pilot", is_pilot=None),
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
        broken(1, "in_set protocol", protocol="guess"),
        broken(2, "greater loss_high, loss", loss_high=-9.0),
        broken(2, "between rho", rho=2.1),
        broken(0, "greater q_value, p_value", q_value=0.0005),
        broken(2, "between p_value", "greater q_value, p_value", p_value=1.01),
        broken(2, "greater near_u_10, near_u_05", near_u_05=0.6),
        broken(2, "between shift", shift=-2.1),
        broken(2, "in_set slope_within_compression", compression=0.39),
        broken(2, "in_set role", role="sticky"),
    ],
    "sticky_summary": [
        accepted(0, **NO_PILOT),
        broken(0, "in_set miss_rate_agrees_with_counts", **{**NO_PILOT, "miss_rate": 0.0}),
        accepted(0, pilot_shortlisted=0, miss_rate=None, miss_low=None, miss_high=None),
        broken(0, "warning null threshold", threshold=None),
        broken(0, "warning between validation_draws", validation_draws=12),
        broken(0, "between anchors", anchors=0),
        broken(0, "greater eligible, searched", searched=99),
        broken(1, "greater searched, scanned", searched=1),
        accepted(0, reliability=None, reliability_low=None, reliability_high=None),
        broken(0, "between prediction", "greater prediction_high, prediction", prediction=1.1),
        broken(0, "in_set search", search="greedy"),
        broken(0, "null search", search=None),
        broken(0, "greater miss_high, miss_rate", "between miss_high", miss_high=-0.1),
        broken(1, "greater miss_rate, miss_low", miss_low=0.5),
        broken(0, "in_set miss_rate_agrees_with_counts", miss_rate=0.5),
        broken(0, "in_set miss_rate_agrees_with_counts", miss_high=None),
        broken(0, "greater pilot_shortlisted, pilot_missed", "in_set miss_rate_agrees_with_counts", pilot_missed=2),
        broken(1, "between rank_correlation", rank_correlation=1.1),
        broken(1, "between scan_speedup", scan_speedup=-0.1),
        broken(0, "between u", u=1.1),
        broken(0, "between points_below_u", points_below_u=0),
        broken(0, "greater validation_points, points_below_u", points_below_u=99),
    ],
    "sticky_severity": [
        # No bound below nothing, and then the lower end of the estimate lies above it.
        broken(0, "between validated", "in_set capped_counts_have_an_estimate", validated=-1),
        broken(0, "greater estimated, confirmed", confirmed=3),
        broken(0, "greater estimated_high, estimated", estimated_high=0.5),
        broken(1, "in_set capped_counts_have_an_estimate", is_capped=True),
        accepted(1, estimated=None, estimated_low=None, estimated_high=None),
        accepted(0, validated=0, estimated_low=1.2, is_capped=True, confirmed=0),
    ],
    "sticky_shape": [
        broken(0, "greater q05, q01", q05=-0.05),
        broken(0, "greater highest, q999", highest=0.85),
        broken(0, "greater skewness_high, skewness", skewness=0.95),
        broken(1, "between sd", sd=-0.1),
        broken(1, "between tokens", tokens=1),
        broken(1, "in_set space", space="ids"),
    ],
    "sticky_dose": [
        broken(1, "in_set role", role="sticky"),
        broken(1, "between copies", copies=0),
        broken(1, "between pull", pull=1.1),
        broken(1, "null slope", slope=None),
    ],
    "sticky_shift": [
        broken(1, "in_set role", role="control"),
        broken(1, "between after", after=-1.1),
    ],
    "sticky_attention": [
        broken(1, "between wasserstein", wasserstein=-0.01),
        broken(1, "between wasserstein", wasserstein=1.01),
        broken(1, "between sticky_q95", sticky_q95=1.01),
        broken(2, "greater ordinary_q50, ordinary_q25", ordinary_q25=0.9),
        broken(2, "greater permuted_high, permuted_low", permuted_low=0.9),
        broken(2, "between p_value", p_value=1.01),
        broken(2, "between sentences", sentences=0),
    ],
    "sticky_enrichment": [
        broken(6, "between fold", "in_set shares_agree_with_counts", fold=-1.0),
        broken(6, "in_set shares_agree_with_counts", fold=7.0),
        broken(6, "in_set shares_agree_with_counts", share_scanned=None),
        broken(6, "greater q_value, p_value", q_value=0.1),
        broken(6, "between p_value", "greater q_value, p_value", p_value=1.01),
        broken(5, "between odds_ratio", odds_ratio=-0.1),
        broken(9, "between auc", auc=1.01),
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
        broken(0, "between score", score=-0.1),
    ],
    "sticky_reference_summary": [
        broken(0, "in_set protocol", protocol="retention"),
        broken(0, "greater scanned, candidates", candidates=8),
        broken(0, "between u", u=1.1),
    ],
    "sticky_sentence": [
        broken(1, "in_set role", role="pair"),
        broken(1, "in_set purpose", purpose="shift"),
        broken(1, "null sentence", sentence=None),
    ],
    "sticky_pair": [
        broken(4, "between similarity", similarity=1.5),
        broken(4, "in_set purpose", purpose="fun"),
    ],
}
