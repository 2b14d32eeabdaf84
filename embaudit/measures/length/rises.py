"""How much of the rise of similarity with length each control reproduces.

share explained = (rise of the control) / (rise of the curve), between the same two bins. A share above 1 means that
averaging alone would collapse more than the model does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from embaudit.measures.length.curve import CONDITIONS, BinValue
from embaudit.statistics.intervals import jackknife_half_width
from embaudit.words.estimate import Estimate

# Below this rise, shares are meaningless.
MIN_RISE = 0.01


@dataclass(frozen=True)
class Rise:
    """Rise of one condition from the first to the last bin with a mean.

    Attributes:
        of_natural: relative to the natural curve, between the bins that both have.
        of_truncation: the same, relative to truncations of the same texts; its interval is a jackknife over texts.
    """

    condition: str
    first_length: float | None
    last_length: float | None
    first_cosine: float | None
    last_cosine: float | None
    of_natural: Estimate
    of_truncation: Estimate

    @property
    def rise(self) -> float | None:
        """None if fewer than two bins have a mean."""
        if self.first_cosine is None or self.last_cosine is None:
            return None
        return self.last_cosine - self.first_cosine


def rises(values: Iterable[BinValue]) -> list[Rise]:
    """The rises of the four conditions, in the order of CONDITIONS."""
    by_condition: dict[str, dict[int, BinValue]] = {name: {} for name in CONDITIONS}
    for value in values:
        if value.cosine.mean is not None:
            by_condition[value.condition][value.low] = value
    natural, truncation = by_condition["natural"], by_condition["truncation"]
    found = []
    for name, curve in by_condition.items():
        ends = _ends(curve, curve)
        first, last = (curve[low] for low in ends) if ends else (None, None)
        found.append(
            Rise(
                name,
                first.length if first else None,
                last.length if last else None,
                first.cosine.mean if first else None,
                last.cosine.mean if last else None,
                Estimate(None) if name == "natural" else _share(curve, natural),
                Estimate(None) if name in ("natural", "truncation") else _share(curve, truncation),
            )
        )
    return found


def _ends(curve: dict[int, BinValue], other: dict[int, BinValue]) -> tuple[int, int] | None:
    """The first and the last bin that both curves have; None if there are fewer than two."""
    both = sorted(set(curve) & set(other))
    return (both[0], both[-1]) if len(both) > 1 else None


def _share(control: dict[int, BinValue], curve: dict[int, BinValue]) -> Estimate:
    ends = _ends(control, curve)
    if ends is None:
        return Estimate(None)
    part, whole = (_mean(values, ends[1]) - _mean(values, ends[0]) for values in (control, curve))
    if whole < MIN_RISE:
        return Estimate(None)
    share = part / whole
    four = [values[low].cosine.without for values in (control, curve) for low in ends]
    same_texts = "natural" not in {value.condition for value in curve.values()}
    if not same_texts or min(map(len, four)) == 0:
        return Estimate(share)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (four[1] - four[0]) / (four[3] - four[2])
    return Estimate.around(share, jackknife_half_width(without))


def _mean(values: dict[int, BinValue], low: int) -> float:
    mean = values[low].cosine.mean
    assert mean is not None  # only bins with a mean are kept
    return mean
