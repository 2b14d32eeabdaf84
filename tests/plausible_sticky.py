"""Rows of the sticky tables: eight tokens, all of them scanned, of which three are candidates and one is sticky."""

from __future__ import annotations

from typing import Any

from declared_rows import Table, row_of, rows_of

from embaudit.measures.sticky.tables import SEVERITY_FROM_LOSS
from embaudit.measures.sticky.tables import severity_of as severity

TOKENS = ("the", "river", "##ed", "ng", "龸", "ন", "[MASK]", "9")
SCRIPTS = ("Latin", "Latin", "Latin", "Latin", "Han", "Bengali", "Common", "Common")
ORIGINS = ("word", "word", "piece", "piece", "word", "word", "special", "digits")
SLOPES = (0.80, 0.77, 0.75, 0.70, 0.30, 0.40, 0.55, 0.78)
PULLS = (0.06, 0.08, 0.10, 0.12, 0.20, 0.18, 0.16, 0.05)
DRAWS = (1, 1, 1, 1, 15, 15, 15, 1)
CANDIDATES = (4, 5, 6)
CONTROLS = (0, 1)
CONTROL_SLOPE = 0.785
U = 0.2
# The random tokens that got all draws; the one is on the shortlist, and the search would have kept it.
PILOT = (6,)
# 24 draws against two anchors.
POINTS = 48
# The p-values of the three candidates and what Benjamini-Hochberg makes of them: p · 3/rank.
P_VALUES = {0: 0.6, 1: 0.5, 4: 0.001, 5: 0.02, 6: 0.2}
Q_VALUES = {4: 0.003, 5: 0.03, 6: 0.2}
# Five tokens with one draw, three with 15, and 24 draws for each of five validated ones.
ENCODES = 5 * 1 + 3 * 15 + 5 * 24
EXHAUSTIVE_ENCODES = 8 * 15 + 5 * 24
COPIES = (1, 2, 4, 8)
DOSE_SLOPES = {4: (0.9, 0.7, 0.5, 0.3), 0: (0.95, 0.9, 0.85, 0.8)}
PURPOSES = ("shift", "reference_scoring", "reference_validation")
SIMILARITIES = (0.0, 0.1, 0.2)
# What the pairs of the purpose 'shift' have after insertion.
SHIFTED = {4: (0.05, 0.11, 0.12), 0: (0.01, 0.1, 0.18)}
# The reference protocol scans ok and special tokens; it validates those that have a value.
REFERENCE_SCORES = {0: 0.5, 1: 0.7, 3: 1.1, 4: 9.0, 5: 4.0, 6: 2.0, 7: 0.9}
REFERENCE_VALUES = {4: 0.95, 5: 0.6}
REFERENCE_THRESHOLD = 0.9


def sticky_rows(shift: float) -> dict[str, Table]:
    """Every table of the measure; the shift is added to all slopes."""
    return {
        "sticky_pair": rows_of(
            "sticky_pair",
            "purpose position first similarity",
            *(
                (purpose, i, f"{purpose} {i}", similarity)
                for purpose in PURPOSES
                for i, similarity in enumerate(SIMILARITIES)
            ),
            second="text",
        ),
        "sticky_sentence": rows_of(
            "sticky_sentence",
            "purpose role position sentence",
            *(
                (purpose, role, i, f"{purpose} {role} {i}")
                for purpose in ("scoring", "validation")
                for role in ("draw", "anchor")
                for i in range(2)
            ),
        ),
        "sticky_score": _scores(shift),
        "sticky_validation": [
            _validation(token_id, protocol, shift)
            for token_id in (*CANDIDATES, *CONTROLS)
            for protocol in ("definition", "retention")
        ],
        "sticky_summary": [_sticky_summary(protocol, shift) for protocol in ("definition", "retention")],
        "sticky_severity": _severities(shift),
        "sticky_dose": [
            row_of(
                "sticky_dose",
                **{"token_id": token_id, "role": role, "copies": copies, "points": 24, "pull": pull * copies},
                **{"slope": DOSE_SLOPES[token_id][i], "loss": 1 - DOSE_SLOPES[token_id][i] / DOSE_SLOPES[0][i]},
            )
            for i, copies in enumerate(COPIES)
            for token_id, role, pull in ((4, "candidate", 0.02), (0, "control", 0.005))
        ],
        "sticky_shape": rows_of(
            "sticky_shape",
            "space",
            *(("text",), ("input_embeddings",)),
            **{"tokens": 8, "pairs": 28, "mean": 0.2, "sd": 0.1, "skewness": 0.8, "excess_kurtosis": 1.2},
            **{"gaussian_distance": 0.05, "lowest": -0.1, "q001": -0.1, "q01": 0.0, "q05": 0.1, "q10": 0.2},
            **{"q25": 0.3, "q50": 0.4, "q75": 0.5, "q90": 0.6, "q95": 0.7, "q99": 0.8, "q999": 0.9, "highest": 0.95},
        ),
        "sticky_shift": rows_of(
            "sticky_shift",
            "token_id role position before after",
            *(
                (token_id, role, i, before, after)
                for token_id, role in ((4, "sticky"), (0, "ordinary"))
                for i, (before, after) in enumerate(zip(SIMILARITIES, SHIFTED[token_id], strict=True))
            ),
        ),
        "sticky_attention": rows_of(
            "sticky_attention",
            "includes_special sticky_tokens layer wasserstein",
            (True, len(CANDIDATES), 0, 0.02),
            (True, len(CANDIDATES), 1, 0.03),
            (False, len(CANDIDATES) - 1, 0, 0.02),
            (False, len(CANDIDATES) - 1, 1, 0.03),
            **{"ordinary_tokens": len(CONTROLS), "sentences": 3},
            **{"permuted_low": 0.001, "permuted_high": 0.015, "p_value": 0.01},
            **{"sticky_q05": 0.02, "sticky_q25": 0.04, "sticky_q50": 0.05, "sticky_q75": 0.06, "sticky_q95": 0.09},
            **{"ordinary_q05": 0.01, "ordinary_q25": 0.02, "ordinary_q50": 0.03},
            **{"ordinary_q75": 0.04, "ordinary_q95": 0.06},
        ),
        "sticky_enrichment": [
            row for selection in ("sticky_definition", "sticky_retention") for row in _enrichment(selection)
        ],
        "sticky_reference": _reference(),
        "sticky_reference_summary": [
            row_of(
                "sticky_reference_summary",
                **{"u": U, "scanned": len(REFERENCE_SCORES), "candidates": len(REFERENCE_VALUES)},
                **{"scoring_pairs": len(SIMILARITIES), "validation_pairs": len(SIMILARITIES)},
                # Eight copies under three operators.
                encodes=(len(REFERENCE_SCORES) + len(REFERENCE_VALUES)) * len(SIMILARITIES) * 3 * 8,
                cutoff=min(REFERENCE_SCORES[token_id] for token_id in REFERENCE_VALUES),
                threshold=REFERENCE_THRESHOLD,
            )
        ],
    }


def _scores(shift: float) -> Table:
    by_slope = sorted(range(len(TOKENS)), key=lambda i: (-DRAWS[i], SLOPES[i]))
    by_pull = sorted(range(len(TOKENS)), key=lambda i: (-DRAWS[i], -PULLS[i]))
    return [
        row_of(
            "sticky_score",
            **{"token_id": i, "draws": DRAWS[i], "pull": PULLS[i], "slope": SLOPES[i] + shift},
            **{"pull_rank": by_pull.index(i) + 1, "slope_rank": by_slope.index(i) + 1, "is_pilot": i in PILOT},
            shortlisted_by="definition+retention" if i in CANDIDATES else None,
        )
        for i in range(len(TOKENS))
    ]


def _validation(token_id: int, protocol: str, shift: float) -> dict[str, Any]:
    pull, slope = PULLS[token_id], SLOPES[token_id] + shift
    loss = 1 - slope / CONTROL_SLOPE
    value, threshold = (pull, 0.19) if protocol == "definition" else (slope, 0.35 + shift)
    is_beyond = value > threshold if protocol == "definition" else value < threshold
    is_control = token_id in CONTROLS
    return row_of(
        "sticky_validation",
        **{"token_id": token_id, "protocol": protocol, "role": "control" if is_control else "candidate"},
        **{"points": POINTS, "rho": 0.3 * (1 - pull), "rho_0": 0.3},
        **{"pull": pull, "pull_low": pull - 0.02, "pull_high": pull + 0.02, "excess_pull": pull - 0.07},
        **{"slope": slope, "slope_low": slope - 0.1, "slope_high": slope + 0.1},
        **{"loss": loss, "loss_low": loss - 0.1, "loss_high": loss + 0.1, "severity": severity(loss)},
        **{"focal_point": -0.02, "focal_low": -0.1, "focal_high": 0.1, "sticks_to": "-0.02"},
        # At least the slope: the slope is the correlation times the compression.
        **{"shift": 0.01 * token_id, "compression": slope + 0.1, "near_u_05": 0.25, "near_u_10": 0.5},
        **{"p_value": P_VALUES[token_id], "q_value": Q_VALUES.get(token_id)},
        **{"value": value, "threshold": threshold},
        outlier=None if is_control else "yes" if is_beyond else "no",
    )


def _sticky_summary(protocol: str, shift: float) -> dict[str, Any]:
    return row_of(
        "sticky_summary",
        **{"protocol": protocol, "u": U, "u_ids": 0.21, "u_input_embeddings": 0.4},
        **dict.fromkeys(("vocabulary_size", "eligible", "searched", "scanned"), len(TOKENS)),
        **{"rungs": '[{"draws": 1, "tokens": 8}, {"draws": 15, "tokens": 3}]', "pilot": len(PILOT)},
        **{"encodes": ENCODES, "exhaustive_encodes": EXHAUSTIVE_ENCODES},
        **{"scan_dtype": "bfloat16", "scan_speedup": 4.1, "rank_correlation": 0.998},
        **{"validation_dtype": "bfloat16", "validation_difference": 0.03},
        **{"reliability": 0.4, "reliability_low": 0.3, "reliability_high": 0.5},
        **{"prediction": 0.7, "prediction_low": 0.6, "prediction_high": 0.8},
        # 95 % Clopper-Pearson of none in one.
        **{"pilot_missed": 0, "pilot_shortlisted": 1, "miss_rate": 0.0, "miss_low": 0.0, "miss_high": 0.975},
        **{"draws": 15, "anchors": 9, "validation_draws": 24, "validation_anchors": 2},
        **{"validation_points": POINTS, "points_below_u": 20, "near_u_05_before": 0.1, "near_u_10_before": 0.25},
        **{"candidates": len(CANDIDATES), "controls": len(CONTROLS)},
        control_median=0.07 if protocol == "definition" else CONTROL_SLOPE,
        threshold=0.19 if protocol == "definition" else 0.35 + shift,
    )


def _severities(shift: float) -> Table:
    losses = [1 - (SLOPES[token_id] + shift) / CONTROL_SLOPE for token_id in CANDIDATES]
    rows = []
    for least, name in SEVERITY_FROM_LOSS:
        validated, confirmed = (sum(loss - half >= least for loss in losses) for half in (0, 0.1))
        counts = {"validated": validated, "confirmed": confirmed, "estimated": validated + 0.4}
        ends = {"estimated_low": float(confirmed), "estimated_high": validated + 2.0}
        rows.append(row_of("sticky_severity", severity=name, least_loss=least, **counts, **ends))
    return rows


def _enrichment(selection: str) -> Table:
    """Of the one sticky token, 龸, against the eight scanned ones.

    With one selected token of eight, k of which have a label, Fisher's p is k/8 if it has it and k < 4, and else 1.
    """
    rows = [
        *(
            _share(selection, attribute, value, values.count(value), value == values[4])
            for attribute, values in (("origin", ORIGINS), ("script", SCRIPTS))
            for value in sorted(set(values))
        ),
        _share(selection, "non_latin", "yes", 2, True),
    ]
    for row in rows:
        family = sorted(other["p_value"] for other in rows if other["attribute"] == row["attribute"])
        row["q_value"] = min(
            p * len(family) / (rank + 1) for rank, p in enumerate(family) if rank >= family.index(row["p_value"])
        )
    # Norms are 1.0 … 1.7: four of the other seven lie below that of 龸.
    medians = {"embedding_norm": (1.4, 1.35, 4 / 7), "cosine_to_mean": (0.3, 0.3, 0.5)}
    for attribute, (selected, scanned, auc) in medians.items():
        rows.append(
            _share(selection, attribute, "", 8, True)
            | dict.fromkeys(("share_selected", "share_scanned", "fold", "odds_ratio"))
            | {"p_value": 1.0, "q_value": 1.0, "selected_median": selected, "scanned_median": scanned, "auc": auc}
        )
    return rows


def _share(selection: str, attribute: str, value: str, scanned_with: int, is_with: bool) -> dict[str, Any]:
    return row_of(
        "sticky_enrichment",
        **{"selection": selection, "attribute": attribute, "value": value},
        **{"selected_with": int(is_with), "selected": 1, "scanned_with": scanned_with, "scanned": len(TOKENS)},
        **{"share_selected": float(is_with), "share_scanned": scanned_with / len(TOKENS)},
        fold=is_with * len(TOKENS) / scanned_with,
        # Nobody is selected without it: infinite, which is None.
        odds_ratio=None if is_with else 0.0,
        p_value=scanned_with / len(TOKENS) if is_with and scanned_with < len(TOKENS) / 2 else 1.0,
        **dict.fromkeys(("q_value", "selected_median", "scanned_median", "auc")),
    )


def _reference() -> Table:
    worst_first = sorted(REFERENCE_SCORES, key=lambda token_id: -REFERENCE_SCORES[token_id])
    verdicts = {4: "sticky", 5: "not_sticky"}
    return rows_of(
        "sticky_reference",
        "token_id inserted score score_rank is_shortlisted value verdict",
        *(
            (
                *(token_id, TOKENS[token_id], score, worst_first.index(token_id) + 1),
                *(token_id in REFERENCE_VALUES, REFERENCE_VALUES.get(token_id), verdicts.get(token_id)),
            )
            for token_id, score in REFERENCE_SCORES.items()
        ),
        threshold=REFERENCE_THRESHOLD,
    )
