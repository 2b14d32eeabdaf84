"""The coarsest lattice that a group of numbers lies on, up to what saving them has rounded.

How unlikely that is of other numbers is counted: a number falls within t steps of a lattice with a probability of 2t,
and

    Σ −log 2tᵢ − log(number of lattices tried)

must be above ``EVIDENCE``. Multiples of one step are no independent evidence for a finer one, so that only distinct
numbers count unless there are about as few levels as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np

# Whole numbers of more than 8 bits are not looked for.
MOST = 255
# In nats, for each group, of which most must have it: beyond chance by e^3.
EVIDENCE = 3.0
# Of a step: what arithmetic has rounded before the numbers were saved.
SLACK = 0.01
# Numbers of the group that lattices are tried on before all of it, and the share of outliers that may lie elsewhere.
TRIED_ON, OUTLIERS = 20, 0.02
# Fewer numbers other than 0 cannot tell.
FEWEST = 3
# Digits after the first of a number's mantissa.
DIGITS = {"bfloat16": 7, "float16": 10, "": 20}
# Where saving moves the ends of a group by this part of a step and more, only lattices that fill their bits are tried.
MOVED = 0.15
FULL = (1, 3, 7, 15, 31, 63, 255)
# Equal numbers say nothing where saving moves them by this part of a step, and may have made them equal.
REPEATS = 0.1
# Places that each end is tried at, in what saving may have moved it by.
PLACES = {"bfloat16": 13, "float16": 5, "": 1}
# An offset for each group must save this much: a step that is so much coarser.
COARSER = 1.4


@dataclass(frozen=True)
class Lattice:
    """offset + s·q for whole q.

    Attributes:
        places: the q of the numbers; from 0 at the least number if the lattice does not pass through 0.
        step: s.
        passes_zero: whether the offset is 0.
    """

    places: np.ndarray
    step: float
    passes_zero: bool

    @property
    def levels(self) -> int:
        """How many whole numbers there are between the ends, and 0 if the lattice passes through it."""
        ends = [self.places.min(), self.places.max(), *([0] if self.passes_zero else [])]
        return int(max(ends) - min(ends)) + 1


@dataclass(frozen=True)
class _Tried:
    """Lattices of one kind, the coarsest first: (c,) offsets, steps, how far in steps each may miss a number, and how
    many lattices were tried as far as it."""

    offsets: np.ndarray
    steps: np.ndarray
    slack: np.ndarray
    rank: np.ndarray


def lattice_of(group: np.ndarray, half: str) -> Lattice | None:
    """The coarsest lattice of at most 256 levels that a group's numbers (n,) lie on; None if it may be chance.

    Args:
        half: the precision that all of them have: "bfloat16", "float16" or "".
    """
    numbers = group.astype(np.float64)
    if np.count_nonzero(numbers) < FEWEST or np.ptp(np.abs(numbers[numbers != 0])) + np.ptp(numbers) == 0:
        return None
    error = saving_error(numbers, half)
    found = _through_zero(numbers, error, half)
    if found is not None and found.levels <= len(np.unique(numbers)) + 1:
        return found
    free = _between_ends(numbers, error, half)
    if found is None or (free is not None and free.step > COARSER * found.step):
        return free
    return found


def saving_error(numbers: np.ndarray, half: str) -> np.ndarray:
    """Half a unit in the last place of each number; in float32 a few units, for the arithmetic before."""
    exponent = np.floor(np.log2(np.maximum(np.abs(numbers), 1e-300)))
    least = 2.0**-25 if half == "float16" else 0.0
    return np.asarray(np.where(numbers == 0, 0.0, np.maximum(2.0 ** (exponent - DIGITS[half] - 1), least)))


def _through_zero(numbers: np.ndarray, error: np.ndarray, half: str) -> Lattice | None:
    """Steps are the largest number's share: of one, of two, …, each moved by what saving has moved it by."""
    largest = int(np.argmax(np.abs(numbers)))
    top, moved = abs(numbers[largest]), error[largest]
    points = ceil(moved / top * 2**12) + 1 if half else 1
    tops = top + (np.linspace(-moved, moved, points) if points > 1 else np.zeros(1))
    divisors = np.repeat(np.arange(1, MOST + 1), points)
    between = moved / max(points - 1, 1) if points > 1 else 0.0
    steps = np.tile(tops, MOST) / divisors
    tried = _Tried(np.zeros(len(steps)), steps, SLACK + between / steps, np.arange(1, len(steps) + 1))
    return _first(numbers, error, tried, {largest}, passes_zero=True)


def _between_ends(numbers: np.ndarray, error: np.ndarray, half: str) -> Lattice | None:
    """Whole shares of the range, whose ends are moved by what saving has moved them by."""
    least, most = int(np.argmin(numbers)), int(np.argmax(numbers))
    reach, moved = numbers[most] - numbers[least], max(error[least], error[most])
    if reach <= 2 * moved:
        return None
    coarse = [count for count in range(1, MOST + 1) if moved * count <= MOVED * reach]
    moves = np.linspace(-1, 1, PLACES[half]) if PLACES[half] > 1 else np.zeros(1)
    lows, highs = numbers[least] + moves * error[least], numbers[most] + moves * error[most]
    counts = np.array(sorted({*FULL, *coarse}), dtype=float)[:, None, None]
    steps = (highs[None, None, :] - lows[None, :, None]) / counts
    slack = SLACK + (moved / max(len(moves) - 1, 1) if half else 0.0) / steps
    # What fills its bits is what quantisers give: the others are no reason to doubt it.
    rank = np.where(np.isin(counts, FULL), len(FULL), np.arange(1, len(counts) + 1)[:, None, None]) * len(moves) ** 2
    all_lows, ranks = (np.broadcast_to(one, steps.shape).reshape(-1) for one in (lows[None, :, None], rank))
    tried = _Tried(all_lows, steps.reshape(-1), slack.reshape(-1), ranks)
    return _first(numbers, error, tried, {least, most}, passes_zero=False)


def _first(
    numbers: np.ndarray, error: np.ndarray, tried: _Tried, ends: set[int], *, passes_zero: bool
) -> Lattice | None:
    """The first lattice that the numbers lie on, if that is beyond chance."""
    left = np.flatnonzero(tried.steps > 0)
    for place in _some(numbers):
        near = (numbers[place] - tried.offsets[left]) / tried.steps[left]
        left = left[np.abs(near - np.rint(near)) <= error[place] / tried.steps[left] + tried.slack[left]]
        if not len(left):
            return None
    distinct = np.unique(np.abs(numbers) if passes_zero else numbers, return_index=True)[1]
    for one in left:
        step = float(tried.steps[one])
        places = (numbers - tried.offsets[one]) / step
        allowed = error / step + tried.slack[one]
        is_on = np.abs(places - np.rint(places)) <= allowed
        if is_on.mean() < 1 - OUTLIERS or not _are_equal(numbers[is_on], places[is_on]):
            continue
        found = Lattice(np.rint(places[is_on]).astype(int), step, passes_zero)
        repeats_count = found.levels <= len(numbers) / 2 and error.max() < REPEATS * step
        counted = np.arange(len(numbers)) if repeats_count else distinct
        counted = np.array([at for at in counted if at not in ends and numbers[at] != 0], dtype=int)
        evidence = -np.log(np.minimum(2 * allowed[counted], 1.0)).sum()
        return found if evidence >= EVIDENCE + log(tried.rank[one]) else None
    return None


def _are_equal(numbers: np.ndarray, places: np.ndarray) -> bool:
    """Whether numbers at one place of a lattice are one number, as they are once saved (but for a few outliers)."""
    return len(np.unique(numbers)) <= (1 + OUTLIERS) * len(np.unique(np.rint(places)))


def _some(numbers: np.ndarray) -> np.ndarray:
    """Places of at most ``TRIED_ON`` distinct numbers, the small ones first: saving has moved them least."""
    _, places = np.unique(np.abs(numbers), return_index=True)
    return places[np.unique(np.linspace(0, len(places) - 1, min(TRIED_ON, len(places))).astype(int))]
