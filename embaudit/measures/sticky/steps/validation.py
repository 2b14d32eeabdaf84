"""Validation's encodes: in half precision if that is faster here and shown to move no figure, else as the audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from embaudit.measures.sticky import COMPARED_TOKENS, MEASURE_VERSION
from embaudit.measures.sticky.effects import Effect, measure_effects
from embaudit.measures.sticky.moments import Moments
from embaudit.measures.sticky.steps.candidates import ScanPrecision, SearchMaterial
from embaudit.measures.sticky.steps.files import Sample, points_of, read_moments
from embaudit.steps.results import CheckpointSpec, Staged
from embaudit.steps.step import Outputs, step

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
