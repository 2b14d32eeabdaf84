"""Sticky tokens as steps, second half: effects, thresholds and verdicts of validated tokens, and counts by severity."""

from __future__ import annotations

from typing import Any

import numpy as np

from embaudit.measures.sticky import MEASURE_VERSION, StickySettings
from embaudit.measures.sticky.effects import measure_effects, near_u_before
from embaudit.measures.sticky.plan import SearchFound, is_ordinary
from embaudit.measures.sticky.prevalence import MeasuredLosses, losses, noise, prevalence
from embaudit.measures.sticky.scores import score
from embaudit.measures.sticky.search import halves
from embaudit.measures.sticky.steps.files import Sample, points_of, read_moments
from embaudit.measures.sticky.tables import StickySeverityRow, StickySummaryRow, StickyValidationRow
from embaudit.measures.sticky.verdicts import (
    TokenEffects,
    common_thresholds,
    severity_rows,
    summary_rows,
    validation_rows,
)
from embaudit.steps.results import CheckpointSpec, Staged
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step

# For the counts by severity: their intervals are wide, and more resamples would not make them more precise.
SEVERITY_RESAMPLES = 200


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=(StickyValidationRow, StickySummaryRow),
    name="judge tokens",
    not_in_key=("scan_speedup", "validated_in"),
    reads=("resamples", "basis"),
)
def judge(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    scored: Staged,
    validated: list[Staged],
    plan: dict[str, Any],
    scan_speedup: float | None,
    validated_in: dict[str, Any],
    settings: StickySettings,
) -> None:
    """Effects, intervals, thresholds and verdicts (tables ``sticky_validation`` and ``sticky_summary``).

    Args:
        plan: ``controls`` (ids), and the columns of the summary that earlier steps know.
        scan_speedup, validated_in: columns; no other value depends on them.
    """
    points = points_of(spec, sample, "validation")
    ids, _, moments = read_moments(validated)
    controls, known = plan["controls"], {name: value for name, value in plan.items() if name != "controls"}
    found = measure_effects(points, moments, np.isin(ids, controls), settings.resamples, sample.seed)
    effects = dict(zip(ids.tolist(), found, strict=True))
    scanned = scored.found(SearchFound)
    shortlists = scanned.shortlists
    judged = TokenEffects(shortlists, frozenset(controls), effects, common_thresholds(shortlists, effects))
    near_05, near_10 = near_u_before(points)
    (baseline,) = read_rows([sample.similarity.path])
    summary = summary_rows(
        judged,
        shared={
            **{name: value for name, value in baseline.items() if name != "tokens"},
            **known,
            "scan_speedup": scan_speedup,
            **validated_in,
            "scanned": scored.rows,
            "rungs": scanned.rungs,
            "validation_draws": len(points.draws),
            "validation_anchors": len(points.anchors),
            "validation_points": points.count,
            "points_below_u": int(points.below_u.sum()),
            "controls": len(controls),
            "near_u_05_before": near_05,
            "near_u_10_before": near_10,
            "basis": settings.basis,
        },
        scan=scanned,
    )
    out.rows(StickyValidationRow, validation_rows(judged, settings.basis, validated_in["validation_dtype"]))
    out.rows(StickySummaryRow, summary)


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=(StickySeverityRow,),
    name="count severities",
)
def count_severities(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    tokens: Staged,
    pilot: list[Staged],
    scored: Staged,
    verdicts: Staged,
    searched: int,
) -> None:
    """Number of tokens at each severity: among the validated ones, and in total (table ``sticky_severity``).

    Args:
        pilot: the files of a random sample of the ``searched`` tokens.
        scored: the file of ``sticky_score``.
        verdicts: the file of ``sticky_validation``.
    """
    points = points_of(spec, sample, "scoring")
    ids, draws, moments = read_moments(pilot)
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    ordinary = np.array([is_ordinary(entries[token]) for token in ids.tolist()])
    split = halves(points.at(draws), moments, sample.seed)
    measured = MeasuredLosses(np.empty(0), np.empty(0), searched, float("nan"))
    if split and ordinary.any():
        kept, is_dropped = _kept_by_the_search(scored, ids, len(draws))
        slopes = np.concatenate([kept, score(points.at(draws), moments).slope])
        # Only the pilot's are ordinary at random.
        lost = losses(slopes, np.concatenate([np.zeros(len(kept), dtype=bool), ordinary]))
        is_sample = np.concatenate([np.zeros(len(kept), dtype=bool), is_dropped])
        counted = lost[~is_sample]
        measured = MeasuredLosses(counted, lost[is_sample], searched - len(counted), noise(split, ordinary))
    candidates = [
        (row["loss"], row["loss_low"])
        for row in read_rows([verdicts.path])
        if row["role"] == "candidate" and row["protocol"] == "retention"
    ]
    found = prevalence(measured, candidates, SEVERITY_RESAMPLES, sample.seed)
    out.rows(StickySeverityRow, severity_rows(found))


def _kept_by_the_search(scored: Staged, pilot: np.ndarray, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of the other tokens that got all draws, and which of the pilot stand for those that did not.

    Where nothing was dropped, or none of the pilot would have been, the pilot stands for all tokens.
    """
    is_dropped = np.isin(pilot, scored.found(SearchFound).pilot_dropped)
    if not is_dropped.any():
        return np.empty(0), np.ones(len(pilot), dtype=bool)
    rows = read_rows([scored.path])
    return np.array([row["slope"] for row in rows if row["draws"] == draws and not row["is_pilot"]]), is_dropped
