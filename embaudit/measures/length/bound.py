"""The published upper bound on σ_a, and a Gaussian simulation of where it holds.

    σ_a ≤ √(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1))        (arXiv 2410.24200, as printed in the summary at hand)

with σ_s the standard deviation of the logits. It assumes i.i.d. Gaussian logits, which are simulated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.intervals import around, student_half_width
from embaudit.measures.layers.sigma import largest_singular_values

# 64 cells, from nearly constant logits to those of a sharp head.
SIGMAS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
TOKENS = (4, 8, 16, 32, 64, 128, 256, 512)
MATRICES = 20


@dataclass(frozen=True)
class BoundCell:
    """One cell of the simulation: mean over matrices, with its 95 % Student's t interval."""

    sigma_s: float
    n: int
    matrices: int
    sigma_a: float
    sigma_a_low: float | None
    sigma_a_high: float | None
    bound: float
    holds: bool


def claimed_bound(n: int | np.ndarray, sigma_s: np.ndarray) -> np.ndarray:
    """√(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1)), elementwise."""
    steepness = 2 * np.sqrt(1 + np.exp(-2 * np.square(sigma_s))) * (np.asarray(n) - 1.0) ** 1.5
    return np.asarray(np.sqrt(n / (steepness + 1)))


def simulate(
    sigmas: Sequence[float] = SIGMAS,
    tokens: Sequence[int] = TOKENS,
    *,
    matrices: int = MATRICES,
    seed: int = 0,
) -> Iterator[BoundCell]:
    """σ_a of softmax(σ_s·G) with G an (n, n) matrix of standard Gaussians, cell by cell.

    A cell's matrices depend only on its σ_s and n and the seed.

    Raises:
        ValueError: if a σ_s is negative or not finite, an n is less than 2, or ``matrices`` is less than 1.
    """
    if any(not 0 <= sigma < np.inf for sigma in sigmas) or any(n < 2 for n in tokens) or matrices < 1:
        raise ValueError("σ_s must be at least 0, n at least 2, and the number of matrices at least 1.")
    for sigma_s in sigmas:
        for n in tokens:
            yield _cell(float(sigma_s), int(n), matrices, seed)


def _cell(sigma_s: float, n: int, matrices: int, seed: int) -> BoundCell:
    import torch

    generator = np.random.default_rng([seed, n, round(sigma_s * 1_000_000)])
    values = []
    for _ in range(matrices):
        logits = torch.from_numpy(sigma_s * generator.standard_normal((n, n)))
        values.append(float(largest_singular_values(torch.softmax(logits, dim=1))))
    mean, bound = float(np.mean(values)), float(claimed_bound(n, np.array(sigma_s)))
    low, high = around(mean, student_half_width(np.array(values)))
    return BoundCell(sigma_s, n, matrices, mean, low, high, bound, mean <= bound)
