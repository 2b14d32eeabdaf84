"""``python -m benchmarks bound``: does the published bound on σ_a hold under its own assumption, Gaussian logits?

σ_a = ‖PA‖₂ of A = softmax(σ_s·G), G an n × n matrix of standard Gaussians, against
√(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1)) of arXiv 2410.24200.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.measures.layers.terms import largest_singular_values
from embaudit.measures.length.heads import claimed_bound
from embaudit.statistics import student_half_width
from embaudit.words.estimate import Estimate

# 64 cells, from nearly constant logits to those of a sharp head.
SIGMAS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
TOKENS = (4, 8, 16, 32, 64, 128, 256, 512)
MATRICES = 20


@dataclass(frozen=True)
class BoundCell:
    """One cell of the simulation: mean over matrices, with its 95 % Student's t interval."""

    sigma_s: float
    n: int
    sigma_a: float
    sigma_a_low: float | None
    sigma_a_high: float | None
    bound: float
    holds: bool


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


def main(arguments: Sequence[str]) -> None:
    """Print the cells, and in how many of them the bound fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks bound", description=__doc__)
    parser.add_argument("--sigma-s", metavar="N", type=float, nargs="+", default=SIGMAS, help="default: 0.1 to 4")
    parser.add_argument("--tokens", metavar="N", type=int, nargs="+", default=TOKENS, help="default: 4 to 512")
    parser.add_argument("--matrices", metavar="N", type=int, default=MATRICES, help=f"per cell; default {MATRICES}")
    parser.add_argument("--seed", metavar="N", type=int, default=0)
    chosen = parser.parse_args(arguments)
    print("| σ_s | n | σ_a [95 %] | bound | |\n|---|---|---|---|---|")
    failed, cells = [], 0
    try:
        for cell in simulate(chosen.sigma_s, chosen.tokens, matrices=chosen.matrices, seed=chosen.seed):
            interval = "" if cell.sigma_a_low is None else f" [{cell.sigma_a_low:.3f}, {cell.sigma_a_high:.3f}]"
            holds = "holds" if cell.holds else "fails"
            print(f"| {cell.sigma_s:g} | {cell.n} | {cell.sigma_a:.3f}{interval} | {cell.bound:.3f} | {holds} |")
            cells += 1
            failed += [] if cell.holds else [cell.sigma_s]
    except ValueError as error:
        parser.error(str(error))
    where = f", all with σ_s ≥ {min(failed):g}" if failed else ""
    print(f"\nThe bound fails in {len(failed)} of {cells} cells{where}.")


def _cell(sigma_s: float, n: int, matrices: int, seed: int) -> BoundCell:
    import torch

    generator = np.random.default_rng([seed, n, round(sigma_s * 1_000_000)])
    values = []
    for _ in range(matrices):
        logits = torch.from_numpy(sigma_s * generator.standard_normal((n, n)))
        values.append(float(largest_singular_values(torch.softmax(logits, dim=1))))
    mean, bound = float(np.mean(values)), float(claimed_bound(n, np.array(sigma_s)))
    _, low, high = Estimate.around(mean, student_half_width(np.array(values)))
    return BoundCell(sigma_s, n, mean, low, high, bound, mean <= bound)
