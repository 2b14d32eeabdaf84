"""Is a matrix random noise? A test that trained matrices fail in several ways at once.

Independent entries w_ij of one distribution have

    a known excess kurtosis        0 for a normal distribution, −1.2 for a uniform one, between them if truncated
    no direction beyond the edge   σ_max(W) ≤ σ(√m + √n)  (Marchenko and Pastur 1967; Tracy and Widom for small ones)
    no row or column of its own    the mean squares of rows spread as those of n independent entries do

Training moves all three: tails become heavy, few directions dominate, some rows are larger than others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from embaudit.checkpoint.streamed import was_read

if TYPE_CHECKING:
    import torch

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
