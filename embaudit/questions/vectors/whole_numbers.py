"""Ways to round a checkpoint's vectors to whole numbers, told from the numbers that an index stores.

A way is a function of the checkpoint's vectors with a scale, an offset or a range that the index does not keep, so that
they are fitted to its rows. What fits its rows says nothing if it would fit any rows: so each way says what it leaves
of a vector by its own rounding, and a range for each dimension is only a way if it leaves no more than that of enough
rows. Nothing then passes because the fit is poor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from embaudit.questions.parity.compare import HALF, apart

Distance: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
# What people multiply by; and where other scales are looked for, over the likeliest, first coarsely (what is cut at the
# ends of a range is shorter than it was), then closely.
SCALES = (100.0, 127.0, 127.5, 128.0, 255.0, 1_000.0, 10_000.0)
NEARBY, CLOSE = np.linspace(0.8, 1.6, 81), np.linspace(0.99, 1.01, 81)
ROUNDED: tuple[Callable[[np.ndarray], np.ndarray], ...] = (np.rint, np.trunc, np.floor)
# A scale is fitted to this share of the rows, those that are nearest without one.
NEAREST = 0.1
# Fitting two numbers for each dimension takes so many rows, and starts with so many, or this share of all.
FEWEST_FITTED, FIRST_FITTED, FIRST_SHARE = 10, 8, 1 / 16
FITS, FIRST_FITS = 8, 2
# What rounding leaves is 1/12 of a step² on average; of one row, up to so many times that.
OF_ONE_ROW = 2
# Numbers that may go to the next whole one beyond what is expected, in standard deviations.
DEVIATIONS = 4
# Of the checkpoint's numbers, below which all stored ones may be positive by chance or by clipping.
FEW_NEGATIVE = 0.1
# A way that is not undone exactly is none if it costs more than this (steps of half a standard deviation do): another
# function might be as near.
MOST_EXPECTED = 1 / 96
# A dimension tells a row if all but this share of its variance is the checkpoint's; so many dimensions must.
NOT_ITS, TELLING = 0.25, 0.5
BYTE_STEPS = 256


@dataclass(frozen=True)
class WayToRound:
    """One way.

    Attributes:
        said: as the end of "as whole numbers …".
        distance: as of a ``StoredForm``.
        leaves: the 1 − cosine of a stored vector if the fractions behind it are so far from the checkpoint's.
    """

    said: str
    distance: Distance
    leaves: Callable[[float], float]


def ways_to_round(ours: np.ndarray, stored: np.ndarray) -> Iterator[WayToRound]:
    """By one scale for all, by each row's largest number, by an offset and a scale, or by a range for each dimension.

    Args:
        ours: (n, d) the checkpoint's vectors, NaN for none.
        stored: (n, d) whole numbers.
    """
    numbers = stored.astype(np.float64)
    known = np.isfinite(ours).all(axis=1) & (ours != 0).any(axis=1) & (numbers != 0).any(axis=1)
    called = _called(stored)
    if not known.any():
        # Nothing can be compared, in whatever way.
        yield WayToRound(called, lambda ours, stored: apart(ours[:, : stored.shape[1]], stored), _uniform(0.0))
        return
    flips = _flips(numbers[known])
    low, high = numbers.min(), numbers.max()
    # A scale keeps signs: where half of the checkpoint's numbers are negative and no stored one is, there is an offset.
    keeps_signs = bool(low < 0 or (ours[known] < 0).mean() < FEW_NEGATIVE)
    for rounded in ROUNDED if keeps_signs else ():
        scale = _scale(ours[known], numbers[known], rounded, low, high)

        def by_one(
            ours: np.ndarray, stored: np.ndarray, rounded: Callable[..., np.ndarray] = rounded, scale: float = scale
        ) -> np.ndarray:
            return apart(rounded(ours[:, : stored.shape[1]] * scale).clip(low, high), stored)

        yield WayToRound(called, by_one, flips)

        def by_row(ours: np.ndarray, stored: np.ndarray, rounded: Callable[..., np.ndarray] = rounded) -> np.ndarray:
            own = ours[:, : stored.shape[1]]
            largest = np.abs(own).max(axis=1, keepdims=True).clip(min=1e-30)
            return apart(
                rounded(own * (np.abs(stored.astype(np.float64)).max(axis=1, keepdims=True) / largest)), stored
            )

        yield WayToRound(f"{called} scaled by each row's largest", by_row, flips)
    spread = numbers[known].var(axis=1)
    expected = float(np.mean(1 / (24 * spread.clip(min=1 / 24))))
    if expected <= MOST_EXPECTED or not keeps_signs:

        def by_offset(ours: np.ndarray, stored: np.ndarray) -> np.ndarray:
            return _correlated(ours[:, : stored.shape[1]].astype(np.float64), stored.astype(np.float64), low, high)

        yield WayToRound(f"{called} with an offset and a scale", by_offset, _uniform(expected))
    if known.sum() >= FEWEST_FITTED:
        yield from _by_dimension(ours[known].astype(np.float64), numbers[known], called)


def _called(stored: np.ndarray) -> str:
    """What programs call such numbers."""
    low, high = stored.min(), stored.max()
    return " (int8)" if low >= -128 and high <= 127 else " (uint8)" if low >= 0 and high <= 255 else ""


def _flips(numbers: np.ndarray) -> Callable[[float], float]:
    """What vectors at 1 − cosine δ leave that are rounded alike.

    Their numbers differ by .8·√(2δ)·|q|/√d steps on average, so that as many of d go to the next whole one, and of one
    row a few more; each that does takes 1/(2|q|²).
    """
    d, square = numbers.shape[1], float(np.median(np.square(numbers).sum(axis=1)))

    def leaves(apart_by: float) -> float:
        others = 0.8 * float(np.sqrt(2 * apart_by * d * square))
        return apart_by + (others + DEVIATIONS * float(np.sqrt(others)) + 1) / (2 * square)

    return leaves


def _uniform(expected: float) -> Callable[[float], float]:
    """The same where a rounding of 1 − cosine ``expected`` is not undone."""
    return lambda apart_by: apart_by + OF_ONE_ROW * expected


def _scale(
    ours: np.ndarray, numbers: np.ndarray, rounded: Callable[[np.ndarray], np.ndarray], low: float, high: float
) -> float:
    """The scale at which most numbers of the nearest rows are the stored ones."""
    distances = np.nan_to_num(apart(ours, numbers), nan=2.0)
    nearest = np.argsort(distances)[: max(1, int(NEAREST * len(ours)))]
    own, wanted = ours[nearest].astype(np.float64), numbers[nearest]
    likeliest = float(np.median(np.linalg.norm(wanted, axis=1) / np.linalg.norm(own, axis=1)))

    def most_alike(scales: Iterable[float]) -> float:
        return max(scales, key=lambda scale: int((rounded(own * scale).clip(low, high) == wanted).sum()))

    found = most_alike(likeliest * NEARBY)
    return most_alike([*(one for one in SCALES if abs(one / found - 1) <= 0.05), *(found * CLOSE)])


def _correlated(ours: np.ndarray, numbers: np.ndarray, low: float, high: float) -> np.ndarray:
    """1 − the correlation of a row's numbers with the checkpoint's: whatever the row's offset and scale.

    What was cut at the ends of the range is not known; of few steps, most numbers are there.
    """
    inside = (numbers > low) & (numbers < high)
    inside |= inside.mean(axis=1, keepdims=True) < TELLING
    count = inside.sum(axis=1, keepdims=True)
    off = (
        np.where(inside, one - np.where(inside, one, 0).sum(axis=1, keepdims=True) / count, 0)
        for one in (ours, numbers)
    )
    return apart(*off)


def _by_dimension(ours: np.ndarray, stored: np.ndarray, called: str) -> Iterator[WayToRound]:
    """Whole numbers q = a_j·x_j + b_j of dimension j, fitted to the rows that they fit as rounding does, if any."""
    lowest, highest = stored.min(), stored.max()
    wraps = highest - lowest < BYTE_STEPS
    kept, numbers, way = _likeliest(ours, stored), stored, None
    for turn in range(FITS):
        inside = (stored > lowest) & (stored < highest)
        fit = _Fit.of(ours[kept], numbers[kept], inside[kept], (lowest, highest), wraps)
        if fit is None:
            return
        if wraps:
            numbers = stored - fit.left(ours, stored) + fit.left_around(ours, stored)
        way = WayToRound(f"{called} with a range for each dimension", fit.distance, _uniform(fit.expected))
        distances = fit.distance(ours, stored)
        own = np.flatnonzero(distances <= way.leaves(HALF))
        if len(own) <= len(kept) and turn < FIRST_FITS:
            # The nearest half of what it was fitted to, until that fits.
            own = kept[np.argsort(distances[kept])[: max(FIRST_FITTED, len(kept) // 2)]]
        if len(own) < FIRST_FITTED:
            return
        kept = own
    if way is not None:
        yield way


def _likeliest(ours: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Rows to begin with: those that agree most, each dimension taken by its own mean and spread."""
    rows = [(one - one.mean(axis=0)) / one.std(axis=0).clip(min=1e-12) for one in (ours, stored)]
    order = np.argsort(np.nan_to_num(apart(*rows), nan=2.0))
    return order[: max(FIRST_FITTED, int(FIRST_SHARE * len(ours)))]


@dataclass(frozen=True)
class _Fit:
    """A slope and a shift for each dimension, NaN for one that tells nothing.

    Attributes:
        ends: the least and the largest number: what was beyond them is not known.
        wraps: whether a number beyond the range of a byte comes out at its other end.
        expected: 1 − cosine that rounding leaves of a row.
    """

    slope: np.ndarray
    shift: np.ndarray
    ends: tuple[float, float]
    wraps: bool
    expected: float

    @classmethod
    def of(
        cls, x: np.ndarray, q: np.ndarray, inside: np.ndarray, ends: tuple[float, float], wraps: bool
    ) -> _Fit | None:
        """Fitted by least squares to what lies inside; None if too few dimensions follow the checkpoint's."""
        count = inside.sum(axis=0).clip(min=1)

        def mean(values: np.ndarray) -> np.ndarray:
            return np.asarray(np.where(inside, values, 0).sum(axis=0) / count)

        off, away = x - mean(x), q - mean(q)
        spread, stored_spread = mean(off**2), mean(away**2)
        slope = mean(off * away) / spread.clip(min=1e-30)
        left = mean((away - off * slope) ** 2)
        tells = (spread > 0) & (stored_spread > 0) & (left <= NOT_ITS * stored_spread) & (count >= FIRST_FITTED // 2)
        if tells.sum() < TELLING * x.shape[1]:
            return None
        slope = np.where(tells, slope, np.nan)
        expected = float(np.nansum(1 / slope**2) / 24 / np.square(x[:, tells]).sum(axis=1).mean())
        return cls(slope, mean(q) - slope * mean(x), ends, wraps, expected) if expected <= MOST_EXPECTED else None

    def left(self, ours: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """(n, d) steps by which numbers are not what was fitted; 0 where nothing was."""
        return np.nan_to_num(stored - ours * self.slope - self.shift)

    def left_around(self, ours: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """The same, the shorter way around."""
        return (self.left(ours, stored) + BYTE_STEPS / 2) % BYTE_STEPS - BYTE_STEPS / 2

    def distance(self, ours: np.ndarray, stored: np.ndarray) -> np.ndarray:
        own, numbers = ours[:, : stored.shape[1]].astype(np.float64), stored.astype(np.float64)
        left = (self.left_around if self.wraps else self.left)(own, numbers)
        counts = (numbers > self.ends[0]) & (numbers < self.ends[1]) & np.isfinite(self.slope)
        slope = np.where(np.isfinite(self.slope), self.slope, 1)
        found = apart(np.where(counts, own, 0), np.where(counts, own + left / slope, 0))
        return np.where(counts.mean(axis=1) >= TELLING / 2, found, 1.0)
