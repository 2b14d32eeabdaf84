"""An audit's rows as the flows stage them, small enough to check by hand: for tests of publishing, checks and SQL.

The numbers obey every rule that the suites check (bounds of d_Σ, ranks, verdicts, counts), so that a test breaks
exactly the one it is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from plausible_findings import finding_rows
from plausible_first_minute import first_minute_rows
from plausible_gate import gate_result_rows
from plausible_geometry import geometry_rows
from plausible_impact import impact_rows
from plausible_layers import layer_rows, plane_rows
from plausible_length import length_rows
from plausible_mitigation import mitigation_rows
from plausible_occurrence import occurrence_rows
from plausible_placement import placement_rows
from plausible_socm import socm_rows
from plausible_tempscale import tempscale_rows
from plausible_watch import watch_rows

from embaudit.measures import MEASURES
from embaudit.measures.sticky.scores import SEVERITY_FROM_LOSS, severity
from embaudit.staging.stage import write_rows
from embaudit.tables import TABLES
from embaudit.warehouse.publish import AuditRecord, ExpectationRow, MeasureRun, StagedTable

Rows = dict[str, list[dict[str, Any]]]
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SCHEMAS = {name: table.schema for name, table in TABLES.items()}
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


def plausible_rows(checkpoint: str = "c1", source: str = "packaged:tiny", shift: float = 0.0) -> Rows:
    """All tables of one audit.

    Args:
        shift: added to all slopes, so that two checkpoints differ.
    """
    return {
        "checkpoint": [_checkpoint(checkpoint, source)],
        "corpus": [
            _corpus("w1", "wikipedia", "texts", kept=4, duplicate=1),
            _corpus("s1", "sts", "pairs", kept=2, broken=1),
        ],
        "text": [
            {"corpus_id": "w1", "position": i, "text": text, "title": None, "label": None, "external_id": None}
            for i, text in enumerate(("Rivers flow.", "Stars burn.", "Bees fly.", "Iron rusts."))
        ],
        "text_pair": [
            {
                **{"corpus_id": "s1", "position": i, "first": a, "second": b, "score": score, "relation": "sts"},
                "data_set": None,
            }
            for i, (a, b, score) in enumerate((("A man sings.", "A man is singing.", 4.8), ("Cats.", "Taxes.", 0.2)))
        ],
        "audit_corpus": [{"name": "wikipedia", "corpus_id": "w1"}, {"name": "sts", "corpus_id": "s1"}],
        "token": [
            {
                "checkpoint_id": checkpoint,
                "token_id": i,
                "token": token,
                "text": token.removeprefix("##"),
                "category": "special" if token == "[MASK]" else "unreachable_multi" if token[:2] == "##" else "ok",
                "is_reachable": token != "[MASK]",
                "origin": ORIGINS[i],
                "script": SCRIPTS[i],
                "embedding_norm": 1.0 + i / 10,
                "cosine_to_mean": 0.3,
            }
            for i, token in enumerate(TOKENS)
        ],
        "sticky_pair": [
            {"purpose": purpose, "position": i, "first": f"{purpose} {i}", "second": "text", "similarity": similarity}
            for purpose in PURPOSES
            for i, similarity in enumerate(SIMILARITIES)
        ],
        "sticky_sentence": [
            {"purpose": purpose, "role": role, "position": i, "sentence": f"{purpose} {role} {i}"}
            for purpose in ("scoring", "validation")
            for role in ("draw", "anchor")
            for i in range(2)
        ],
        "sticky_score": _scores(shift),
        "sticky_validation": _validation(shift),
        "sticky_summary": [_sticky_summary(protocol, shift) for protocol in ("definition", "retention")],
        "sticky_severity": _severities(shift),
        "sticky_dose": [
            {
                "token_id": token_id,
                "role": "control" if token_id in CONTROLS else "candidate",
                "copies": copies,
                "points": 24,
                "pull": 0.02 * copies if token_id == 4 else 0.005 * copies,
                "slope": DOSE_SLOPES[token_id][i],
                "loss": 1 - DOSE_SLOPES[token_id][i] / DOSE_SLOPES[0][i],
            }
            for i, copies in enumerate(COPIES)
            for token_id in (4, 0)
        ],
        "sticky_shape": [
            {
                "space": space,
                "tokens": 8,
                "pairs": 28,
                "mean": 0.2,
                "sd": 0.1,
                **{f"skewness{end}": 0.8 + off for end, off in (("", 0.0), ("_low", -0.1), ("_high", 0.1))},
                **{f"excess_kurtosis{end}": 1.2 + off for end, off in (("", 0.0), ("_low", -0.1), ("_high", 0.1))},
                **{f"gaussian_distance{end}": 0.05 + off for end, off in (("", 0.0), ("_low", -0.02), ("_high", 0.02))},
                "lowest": -0.1,
                **{
                    f"q{level}": place / 10
                    for place, level in enumerate(
                        ("001", "01", "05", "10", "25", "50", "75", "90", "95", "99", "999"), start=-1
                    )
                },
                "highest": 0.95,
            }
            for space in ("text", "input_embeddings")
        ],
        "sticky_shift": [
            {
                "token_id": token_id,
                "role": "ordinary" if token_id in CONTROLS else "sticky",
                "position": i,
                "before": before,
                "after": after,
            }
            for token_id in (4, 0)
            for i, (before, after) in enumerate(zip(SIMILARITIES, SHIFTED[token_id], strict=True))
        ],
        "sticky_attention": [
            _attention(layer, includes_special) for includes_special in (True, False) for layer in (0, 1)
        ],
        "sticky_enrichment": [
            row for selection in ("sticky_definition", "sticky_retention") for row in _enrichment(selection)
        ],
        "sticky_reference": _reference(),
        "sticky_reference_summary": [
            {
                "protocol": "reference",
                "u": U,
                "scanned": len(REFERENCE_SCORES),
                "scoring_pairs": len(SIMILARITIES),
                "validation_pairs": len(SIMILARITIES),
                # Eight copies under three operators.
                "encodes": (len(REFERENCE_SCORES) + len(REFERENCE_VALUES)) * len(SIMILARITIES) * 3 * 8,
                "cutoff": min(REFERENCE_SCORES[token_id] for token_id in REFERENCE_VALUES),
                "candidates": len(REFERENCE_VALUES),
                "threshold": REFERENCE_THRESHOLD,
                "sticky": 1,
            }
        ],
        **socm_rows(),
        "socm_plane": plane_rows(),
        "audit_backbone": [{"audit_id": "a2", "backbone_audit_id": "a3"}],
        "gate_result": gate_result_rows(NOON),
        **layer_rows(),
        **first_minute_rows(),
        **geometry_rows(),
        **occurrence_rows(),
        "finding": finding_rows(),
        **length_rows(),
        **tempscale_rows(),
        **impact_rows(),
        **mitigation_rows(),
        **placement_rows(),
        **watch_rows(),
    }


def stage_all(folder: Path, rows: Mapping[str, list[dict[str, Any]]]) -> list[StagedTable]:
    """Stage every table in a file of its own, in the schemas of the tasks."""
    staged = []
    for table, table_rows in rows.items():
        path = folder / f"{table}-00000.parquet"
        write_rows(path, table_rows, SCHEMAS[table])
        staged.append(StagedTable(table, (str(path),)))
    return staged


def audit_record(
    audit_id: str = "a1", checkpoint: str = "c1", status: str = "published", reason: str | None = None, minutes: int = 0
) -> AuditRecord:
    """An audit's log row, finished so many minutes after noon."""
    finished = NOON + timedelta(minutes=minutes)
    return AuditRecord(
        audit_id=audit_id,
        checkpoint_id=checkpoint,
        profile="quick",
        settings={"sticky": {"copies": 8}},
        seed=0,
        device="cpu",
        dtype="float32",
        embaudit_version="0.1.0",
        libraries={"torch": "2.13.0"},
        started=finished - timedelta(seconds=30),
        finished=finished,
        seconds=30.0,
        status=status,
        reason=reason,
    )


def measure_runs(rows: Rows | None = None) -> list[MeasureRun]:
    """One run for each measure; of those with rows, if given."""
    return [
        MeasureRun(measure, f"key-{measure}", 1, {"seed": 0}, NOON, 12.5, 100, "done")
        for measure, declared in MEASURES.items()
        if rows is None or any(rows.get(row.table.name) for row in declared.rows)
    ]


def expectation(
    table: str = "token", shard: int = 0, *, success: bool = True, severity: str = "critical"
) -> ExpectationRow:
    """One expectation's outcome."""
    return ExpectationRow(
        table_name=table,
        shard=shard,
        expectation="expect_column_values_to_not_be_null",
        column_name="token_id",
        kwargs={"column": "token_id"},
        severity=severity,
        success=success,
        raised_exception=False,
        unexpected_count=0 if success else 2,
        examples=[] if success else [{"token_id": 3}],
    )


def _checkpoint(checkpoint: str, source: str) -> dict[str, Any]:
    return {
        "checkpoint_id": checkpoint,
        "source": source,
        "revision": None,
        "weights_sha256": sha256(checkpoint.encode()).hexdigest(),
        **dict.fromkeys(("tokenizer_sha256", "config_sha256", "modules_sha256"), "ab" * 32),
        "architecture": "BertModel",
        "hidden_size": 32,
        "layers": 2,
        "heads": 4,
        "parameters": 12_345,
        "vocabulary_size": len(TOKENS),
        "pooling": "mean",
        "pooling_is_mean": True,
        "modules": "Normalize",
        "max_length": 64,
        "prompt": None,
        "query_prompt": "query: ",
        "document_prompt": None,
        "pools_prompt": True,
    }


def _corpus(corpus_id: str, name: str, kind: str, **counts: int) -> dict[str, Any]:
    all_counts = {**dict.fromkeys(("kept", "duplicate", "blank", "broken", "undecodable", "undrawn"), 0), **counts}
    return {
        "corpus_id": corpus_id,
        "name": name,
        "kind": kind,
        "source": "sample",
        "revision": None,
        "read": sum(all_counts.values()),
        **all_counts,
        "share_read": 1.0,
        "first_broken": None,
        "ingested": NOON,
    }


def _scores(shift: float) -> list[dict[str, Any]]:
    by_slope = sorted(range(len(TOKENS)), key=lambda i: (-DRAWS[i], SLOPES[i]))
    by_pull = sorted(range(len(TOKENS)), key=lambda i: (-DRAWS[i], -PULLS[i]))
    return [
        {
            "token_id": i,
            "draws": DRAWS[i],
            "pull": PULLS[i],
            "slope": SLOPES[i] + shift,
            "pull_rank": by_pull.index(i) + 1,
            "slope_rank": by_slope.index(i) + 1,
            "shortlisted_by": "definition+retention" if i in CANDIDATES else None,
            "is_pilot": i in PILOT,
        }
        for i in range(len(TOKENS))
    ]


def _validation(shift: float) -> list[dict[str, Any]]:
    rows = []
    for token_id in (*CANDIDATES, *CONTROLS):
        for protocol, value, threshold in (
            ("definition", PULLS[token_id], 0.19),
            ("retention", SLOPES[token_id] + shift, 0.35 + shift),
        ):
            slope = SLOPES[token_id] + shift
            loss = 1 - slope / CONTROL_SLOPE
            is_beyond = value > threshold if protocol == "definition" else value < threshold
            is_control = token_id in CONTROLS
            rows.append(
                {
                    "token_id": token_id,
                    "protocol": protocol,
                    "role": "control" if is_control else "candidate",
                    "points": POINTS,
                    "rho": 0.3 * (1 - PULLS[token_id]),
                    "rho_0": 0.3,
                    "pull": PULLS[token_id],
                    "pull_low": PULLS[token_id] - 0.02,
                    "pull_high": PULLS[token_id] + 0.02,
                    "excess_pull": PULLS[token_id] - 0.07,
                    "slope": slope,
                    "slope_low": slope - 0.1,
                    "slope_high": slope + 0.1,
                    "loss": loss,
                    "loss_low": loss - 0.1,
                    "loss_high": loss + 0.1,
                    "focal_point": -0.02,
                    "focal_low": -0.1,
                    "focal_high": 0.1,
                    "sticks_to": "-0.02",
                    "severity": severity(loss),
                    "shift": 0.01 * token_id,
                    # At least the slope: the slope is the correlation times the compression.
                    "compression": slope + 0.1,
                    "near_u_05": 0.25,
                    "near_u_10": 0.5,
                    "p_value": P_VALUES[token_id],
                    "q_value": Q_VALUES.get(token_id),
                    "value": value,
                    "threshold": threshold,
                    "outlier": None if is_control else "yes" if is_beyond else "no",
                    "basis": "screened",
                }
            )
    return rows


def _sticky_summary(protocol: str, shift: float) -> dict[str, Any]:
    return {
        "protocol": protocol,
        "u": U,
        "u_ids": 0.21,
        "u_input_embeddings": 0.4,
        "vocabulary_size": len(TOKENS),
        "eligible": len(TOKENS),
        "searched": len(TOKENS),
        "scanned": len(TOKENS),
        "search": "sequential",
        "rungs": '[{"draws": 1, "tokens": 8}, {"draws": 15, "tokens": 3}]',
        "pilot": len(PILOT),
        "encodes": ENCODES,
        "exhaustive_encodes": EXHAUSTIVE_ENCODES,
        "scan_dtype": "bfloat16",
        "scan_speedup": 4.1,
        "rank_correlation": 0.998,
        "reliability": 0.4,
        "reliability_low": 0.3,
        "reliability_high": 0.5,
        "prediction": 0.7,
        "prediction_low": 0.6,
        "prediction_high": 0.8,
        "pilot_shortlisted": 1,
        "pilot_missed": 0,
        "miss_rate": 0.0,
        # 95 % Clopper-Pearson of none in one.
        "miss_low": 0.0,
        "miss_high": 0.975,
        "draws": 15,
        "anchors": 9,
        "validation_draws": 24,
        "validation_anchors": 2,
        "validation_points": POINTS,
        "points_below_u": 20,
        "candidates": len(CANDIDATES),
        "controls": len(CONTROLS),
        "near_u_05_before": 0.1,
        "near_u_10_before": 0.25,
        "control_median": 0.07 if protocol == "definition" else CONTROL_SLOPE,
        "threshold": 0.19 if protocol == "definition" else 0.35 + shift,
        "outliers": 1,
        "basis": "screened",
    }


def _severities(shift: float) -> list[dict[str, Any]]:
    losses = [1 - (SLOPES[token_id] + shift) / CONTROL_SLOPE for token_id in CANDIDATES]
    rows = []
    for least, name in SEVERITY_FROM_LOSS:
        validated, confirmed = (sum(loss - half >= least for loss in losses) for half in (0, 0.1))
        rows.append(
            {
                "severity": name,
                "least_loss": least,
                "validated": validated,
                "confirmed": confirmed,
                "estimated": validated + 0.4,
                "estimated_low": float(confirmed),
                "estimated_high": validated + 2.0,
                "is_capped": False,
            }
        )
    return rows


def _attention(layer: int, includes_special: bool) -> dict[str, Any]:
    quantiles = zip(
        ("05", "25", "50", "75", "95"), (0.02, 0.04, 0.05, 0.06, 0.09), (0.01, 0.02, 0.03, 0.04, 0.06), strict=True
    )
    return {
        "layer": layer,
        "includes_special": includes_special,
        "sticky_tokens": len(CANDIDATES) - (not includes_special),
        "ordinary_tokens": len(CONTROLS),
        "sentences": 3,
        "wasserstein": 0.02 + 0.01 * layer,
        "permuted_low": 0.001,
        "permuted_high": 0.015,
        "p_value": 0.01,
        **{
            f"{group}_q{level}": value
            for level, sticky, ordinary in quantiles
            for group, value in (("sticky", sticky), ("ordinary", ordinary))
        },
    }


def _enrichment(selection: str) -> list[dict[str, Any]]:
    """Of the one sticky token, 龸, against the eight scanned ones.

    With one selected token of eight, k of which have a label, Fisher's p is k/8 if it has it and k < 4, and else 1.
    """
    rows = [
        _share(selection, "origin", origin, ORIGINS.count(origin), origin == ORIGINS[4])
        for origin in ("digits", "piece", "special", "word")
    ]
    rows += [
        _share(selection, "script", script, SCRIPTS.count(script), script == SCRIPTS[4])
        for script in ("Bengali", "Common", "Han", "Latin")
    ]
    rows.append(_share(selection, "non_latin", "yes", 2, True))
    for row in rows:
        family = sorted(other["p_value"] for other in rows if other["attribute"] == row["attribute"])
        row["q_value"] = min(
            p * len(family) / (rank + 1) for rank, p in enumerate(family) if rank >= family.index(row["p_value"])
        )
    # Norms are 1.0 … 1.7: four of the other seven lie below that of 龸.
    norm = {"selected_median": 1.4, "scanned_median": 1.35, "auc": 4 / 7}
    same = {"selected_median": 0.3, "scanned_median": 0.3, "auc": 0.5}
    for attribute, numbers in (("embedding_norm", norm), ("cosine_to_mean", same)):
        rows.append(
            _share(selection, attribute, "", 8, True)
            | dict.fromkeys(("share_selected", "share_scanned", "fold", "odds_ratio"))
            | {"p_value": 1.0, "q_value": 1.0, **numbers}
        )
    return rows


def _share(selection: str, attribute: str, value: str, scanned_with: int, is_with: bool) -> dict[str, Any]:
    return {
        "selection": selection,
        "attribute": attribute,
        "value": value,
        "selected_with": int(is_with),
        "selected": 1,
        "scanned_with": scanned_with,
        "scanned": len(TOKENS),
        "share_selected": float(is_with),
        "share_scanned": scanned_with / len(TOKENS),
        "fold": is_with * len(TOKENS) / scanned_with,
        # Nobody is selected without it: infinite, which is None.
        "odds_ratio": None if is_with else 0.0,
        "p_value": scanned_with / len(TOKENS) if is_with and scanned_with < len(TOKENS) / 2 else 1.0,
        "q_value": None,
        **dict.fromkeys(("selected_median", "scanned_median", "auc")),
    }


def _reference() -> list[dict[str, Any]]:
    worst_first = sorted(REFERENCE_SCORES, key=lambda token_id: -REFERENCE_SCORES[token_id])
    rows = []
    for token_id, score in REFERENCE_SCORES.items():
        value = REFERENCE_VALUES.get(token_id)
        verdict = None if value is None else "sticky" if value > REFERENCE_THRESHOLD else "not_sticky"
        rows.append(
            {
                "token_id": token_id,
                "inserted": TOKENS[token_id],
                "score": score,
                "score_rank": worst_first.index(token_id) + 1,
                "is_shortlisted": value is not None,
                "value": value,
                "threshold": REFERENCE_THRESHOLD,
                "verdict": verdict,
            }
        )
    return rows
