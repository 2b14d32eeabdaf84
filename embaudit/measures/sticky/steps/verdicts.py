"""Sticky tokens as steps, second half: effects, thresholds and verdicts of validated tokens, and counts by severity.

Validation's encodes: in half precision if that is faster here and shown to move no figure, else as the audit.

Chooses the severe tokens that a measure works on: those requested, or those that the search found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.measures.run import Run
from embaudit.measures.sticky import COMPARED_TOKENS, MEASURE_VERSION, StickySettings
from embaudit.measures.sticky.effects import Effect, measure_effects, near_u_before
from embaudit.measures.sticky.inspect import find_token
from embaudit.measures.sticky.moments import Moments, score
from embaudit.measures.sticky.plan import SearchFound, is_ordinary
from embaudit.measures.sticky.search import halves
from embaudit.measures.sticky.steps.candidates import ScanPrecision, SearchMaterial
from embaudit.measures.sticky.steps.files import Sample, points_of, read_moments
from embaudit.measures.sticky.tables import StickySeverityRow, StickySummaryRow, StickyValidationRow
from embaudit.measures.sticky.verdicts import (
    MeasuredLosses,
    TokenEffects,
    common_thresholds,
    losses,
    noise,
    prevalence,
    summary_rows,
    validation_rows,
)
from embaudit.remedies.screening import Severity, severe_rows
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import UsageError

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
    out.rows(StickySeverityRow, found)


def _kept_by_the_search(scored: Staged, pilot: np.ndarray, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of the other tokens that got all draws, and which of the pilot stand for those that did not.

    Where nothing was dropped, or none of the pilot would have been, the pilot stands for all tokens.
    """
    is_dropped = np.isin(pilot, scored.found(SearchFound).pilot_dropped)
    if not is_dropped.any():
        return np.empty(0), np.ones(len(pilot), dtype=bool)
    rows = read_rows([scored.path])
    return np.array([row["slope"] for row in rows if row["draws"] == draws and not row["is_pilot"]]), is_dropped


# The largest difference that is accepted, as a share of a 95 % interval's width.
ACCEPTED_SHARE = 0.1
# Enough for the width of an interval to a tenth.
COMPARED_RESAMPLES = 200
FIGURES = ("pull", "slope", "loss")


@dataclass(frozen=True)
class ValidatedIn:
    """The validation's precision; if half precision was tried, how far it moved a figure, in widths of its interval."""

    validation_dtype: str
    validation_difference: float | None


@dataclass(frozen=True)
class PrecisionDifference:
    """The largest difference of two precisions in any figure of any token, in widths of its interval."""

    largest: float


def validate(
    material: SearchMaterial, candidates: np.ndarray, controls: np.ndarray, precision: ScanPrecision
) -> tuple[list[Staged], list[Staged], ValidatedIn]:
    """The sums of all tokens over all draws of the validation.

    Half precision is used if the scan uses it because it is clearly faster here. Some tokens are then validated in both
    precisions. If a figure differs by more than a tenth of its interval, all tokens are validated in the audit's own.

    Returns:
        The files that verdicts follow from, those that were only compared, and the precision.
    """
    exact, draws = material.run.spec.dtype, list(range(material.draws("validation")))
    tokens = np.union1d(candidates, controls)

    def inserted(token_ids: np.ndarray, dtype: str) -> list[Staged]:
        return material.inserted("validation", token_ids, draws, dtype)

    is_allowed = material.settings.may_validate_as_scanned(len(candidates), len(controls))
    if precision.speedup is None or precision.dtype == exact or not is_allowed:
        return inserted(tokens, exact), [], ValidatedIn(exact, None)
    half = inserted(tokens, precision.dtype)
    both = inserted(np.union1d(_spread(candidates), _spread(controls)), exact)
    (compared,) = material.run(
        compare_validations, half=half, exact=both, controls=controls.tolist(), **material.shared
    )
    difference = compared.found(PrecisionDifference).largest
    if difference <= ACCEPTED_SHARE:
        return half, both, ValidatedIn(precision.dtype, difference)
    return inserted(tokens, exact), [*half, *both], ValidatedIn(exact, difference)


@step("sticky", version=MEASURE_VERSION, tables=("validation_precision",), name="compare precisions of validation")
def compare_validations(
    out: Outputs, spec: CheckpointSpec, sample: Sample, half: list[Staged], exact: list[Staged], controls: list[int]
) -> None:
    """How far half precision moves the figures of the tokens that were validated in both, in widths of an interval."""
    points = points_of(spec, sample, "validation")
    ids, _, in_full = read_moments(exact)
    of_all, _, moments = read_moments(half)
    in_half = Moments(moments.values[np.searchsorted(of_all, ids)])
    is_control = np.isin(ids, controls)
    before, after = (
        measure_effects(points, read, is_control, COMPARED_RESAMPLES, sample.seed) for read in (in_full, in_half)
    )
    found = PrecisionDifference(max(differences(before, after), default=0.0))
    out.rows("validation_precision", [asdict(found)], {"largest": "float64"}, detail=found)


def differences(exact: Sequence[Effect], other: Sequence[Effect]) -> list[float]:
    """|Difference| of each token's figures, as a share of the width of its interval in the first.

    One that only the first precision defines counts as a whole interval; one without an interval does not count.
    """
    shares = []
    for first, second in zip(exact, other, strict=True):
        for name in FIGURES:
            low, high = getattr(first, f"{name}_low"), getattr(first, f"{name}_high")
            if low is None or high is None or high <= low:
                continue
            difference = abs(getattr(first, name) - getattr(second, name))
            shares.append(difference / (high - low) if np.isfinite(difference) else 1.0)
    return shares


def _spread(token_ids: np.ndarray) -> np.ndarray:
    """Some of the tokens, evenly over their ids."""
    return token_ids[np.linspace(0, len(token_ids) - 1, COMPARED_TOKENS).astype(int)]


def severe_tokens(
    run: Run,
    wanted: Sequence[str],
    severity: Severity,
    entries: Mapping[int, Mapping[str, Any]],
) -> list[int]:
    """Token ids, worst first or as requested, without tokens that no text can contain or that every text contains.

    Args:
        wanted: requested tokens; if empty, those that the search found to be at least of this severity.
        entries: the vocabulary by id.

    Raises:
        UsageError: if the checkpoint has no such token, or none of the requested tokens is left.
    """
    checkpoint = checkpoint_of(run.spec)
    if wanted:
        asked = list(dict.fromkeys(find_token(checkpoint, one) for one in wanted))
    else:
        verdicts = read_rows([part.path for part in run.earlier if part.table == "sticky_validation"])
        asked = [row["token_id"] for row in severe_rows(verdicts, severity)]
    can_be = treatable(checkpoint, asked)
    found = [token for token in asked if token in can_be and entries[token]["is_reachable"]]
    if wanted and not found:
        raise UsageError(
            "None of these tokens is in some texts and not in others: no text can contain them, or every text does.",
            next_step="See what is reachable: embaudit query vocabulary",
        )
    return found


def treatable(checkpoint: Checkpoint, severe: Collection[int]) -> frozenset[int]:
    """The severe tokens that can be treated: all but those in every text (special tokens, prompts)."""
    everywhere = {*checkpoint.prefix_ids, *checkpoint.suffix_ids, *checkpoint.prompt.ids}
    return frozenset(severe) - everywhere
