"""The coarsest lattice that a group of numbers lies on, up to what saving them has rounded.

How unlikely that is of other numbers is counted: a number falls within t steps of a lattice with a probability of 2t,
and

    Σ −log 2tᵢ − log(number of lattices tried)

must be above ``EVIDENCE``. Multiples of one step are no independent evidence for a finer one, so that only distinct
numbers count unless there are about as few levels as numbers.

Is a matrix random noise? A test that trained matrices fail in several ways at once.

Independent entries w_ij of one distribution have

    a known excess kurtosis        0 for a normal distribution, −1.2 for a uniform one, between them if truncated
    no direction beyond the edge   σ_max(W) ≤ σ(√m + √n)  (Marchenko and Pastur 1967; Tracy and Widom for small ones)
    no row or column of its own    the mean squares of rows spread as those of n independent entries do

Training moves all three: tails become heavy, few directions dominate, some rows are larger than others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint.streamed import was_read

if TYPE_CHECKING:
    import torch


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


# Excess kurtosis of what initialisers draw: normal, truncated at 2σ and 3σ, and uniform (Xavier, Kaiming, Linear).
KURTOSES = {"normal": 0.0, "truncated normal (3σ)": -0.1711, "truncated normal (2σ)": -0.6345, "uniform": -1.2}
# In standard errors of a sample of independent entries.
TOLERANCE = 5.0
# Beyond the edge by this factor, or by what the largest singular value of a small matrix varies.
EDGE = 1.03
TRACY_WIDOM = 4.0
# Smaller matrices cannot show structure: one side must have as many entries, the matrix so many.
MIN_SIDE, MIN_ENTRIES = 16, 1024
# A sample of rows of larger matrices: structure of training is in all of them.
MAX_ENTRIES = 1 << 20
PROBES, ITERATIONS = 8, 12


@dataclass(frozen=True)
class Look:
    """What one matrix looks like.

    Attributes:
        std: of its entries.
        kurtosis: excess kurtosis.
        rows, columns: variance of the mean squares of rows and columns over that of independent entries; 1 for noise.
        edge: lower bound of the largest singular value over the edge of noise; None if not computed, because the other
            figures rule out noise.
        distribution: the name of the distribution that entries of noise seem to come from; empty if it is not noise.
    """

    std: float
    kurtosis: float
    rows: float
    columns: float
    edge: float | None
    distribution: str

    @property
    def is_noise(self) -> bool:
        return bool(self.distribution)


def can_tell(matrix: torch.Tensor) -> bool:
    """Whether a tensor is large enough for the test; experts (E, m, n) count as one matrix (E·m, n)."""
    W = _as_matrix(matrix)
    return matrix.dim() > 1 and min(W.shape) >= MIN_SIDE and W.numel() >= MIN_ENTRIES


def look_at(matrix: torch.Tensor) -> Look:
    """Test a matrix (m, n); at most ``MAX_ENTRIES`` of its entries, in whole rows evenly chosen.

    Args:
        matrix: ``can_tell`` is true for it.
    """
    W = _as_matrix(matrix.detach())
    step = max(1, W.numel() // MAX_ENTRIES)
    W = W[::step].float().cpu()
    was_read()
    # The row of padding is of zeros in any model, and pruned rows are.
    W = W[W.any(dim=1)]
    if len(W) == 0 or not bool((W - W[0, 0]).any()):
        return Look(0.0, 0.0, 0.0, 0.0, None, "")
    m, n = W.shape
    W = W - W.mean()
    std = float(W.square().mean().sqrt())
    if m < MIN_SIDE:
        return Look(std, 0.0, 0.0, 0.0, None, "")
    squares = (W / std).square()
    kurtosis = float(squares.square().mean()) - 3
    # The variance of one square is kurtosis + 2.
    one = max(kurtosis + 2, 1e-6)
    rows = float(squares.mean(1).var()) / (one / n)
    columns = float(squares.mean(0).var()) / (one / m)
    error = sqrt(24 / W.numel())
    distribution = next((name for name, value in KURTOSES.items() if abs(kurtosis - value) < TOLERANCE * error), "")
    are_alike = all(spread <= 1 + TOLERANCE * sqrt(2 / (count - 1)) for spread, count in ((rows, m), (columns, n)))
    if not distribution or not are_alike:
        return Look(std, kurtosis, rows, columns, None, "")
    edge = _largest(W) / (std * (sqrt(m) + sqrt(n)))
    return Look(std, kurtosis, rows, columns, edge, distribution if edge <= edge_of(m, n) else "")


def edge_of(m: int, n: int) -> float:
    """The largest singular value that noise of this shape has, over σ(√m + √n).

    σ_max² has mean about (√m + √n)² and scale (√m + √n)(1/√m + 1/√n)^⅓ (Johnstone 2001).
    """
    centre = (sqrt(m) + sqrt(n)) ** 2
    scale = (sqrt(m) + sqrt(n)) * (1 / sqrt(m) + 1 / sqrt(n)) ** (1 / 3)
    return max(EDGE, sqrt((centre + TRACY_WIDOM * scale) / centre))


def _as_matrix(tensor: torch.Tensor) -> torch.Tensor:
    """(m, n); convolutions of width 1 (m, n, 1) are matrices."""
    while tensor.dim() > 2 and tensor.shape[-1] == 1:
        tensor = tensor.squeeze(-1)
    return tensor.reshape(-1, tensor.shape[-1])


def _largest(W: torch.Tensor) -> float:
    """A lower bound of the largest singular value, by block power iteration; tight if it stands out."""
    import torch

    generator = torch.Generator().manual_seed(0)
    Q = torch.linalg.qr(torch.randn(W.shape[1], min(PROBES, W.shape[1]), generator=generator)).Q
    for _ in range(ITERATIONS):
        Q = torch.linalg.qr(W.T @ (W @ Q)).Q
    return float(torch.linalg.matrix_norm(W @ Q, ord=2))
