"""Nuclear norms ‖R₁R₂ᵀ‖_* of many pairs of texts: tr((Σ₁^½ Σ₂ Σ₁^½)^½) without d × d matrices.

With RᵀR = Σ, the singular values of R₁R₂ᵀ (n₁ × n₂) are those of Σ₁^½Σ₂^½. Two methods:

- ``Eigenvalues`` (CPU, float64): square roots of the eigenvalues of the smaller side's Gram matrix. 2·n₁·n₂·d
  operations for the product, 2·n₁²·n₂ for the Gram matrix and 4n₁³/3 for its eigenvalues. A zero singular value comes
  out as 1e-8 of the largest.
- ``Polar`` (GPU): ‖M‖_* = ⟨U, M⟩ with U the orthogonal polar factor of M, by Newton–Schulz steps
  U ← ½ s U (3 − s² UᵀU), scaled so that each step multiplies small singular values by up to 2.6 (Chen and Chow 2014,
  "A stable scaling of Newton-Schulz for improving the sign function computation of a Hermitian matrix"). It needs only
  matrix products, which GPUs batch. Errors in U matter little where M is small, so float32 (MPS has no float64) loses
  1e-6 of the norm instead of the 1e-3 that square roots of float32 eigenvalues lose. Of singular values below
  ``floor``·‖M‖_F a part is missed, at most n·floor of the norm.

Either way, ``pairs.checked`` compares a random sample with float64 singular values in the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from embaudit.system.processors import processors

Job = TypeVar("Job")
Result = TypeVar("Result")
# Block pairs per thread and batch: enough that waiting for the slowest one costs little.
JOBS_PER_THREAD = 8
# Chen and Chow 2014: with it, 1 is mapped to .1.
LARGEST_SCALE = 1.69770248526


class NuclearNorms(Protocol):
    """A method to compute nuclear norms of products.

    Attributes:
        name: recorded with the results.
        tokens_per_block: token rows per block; the product of two blocks has its square as many entries.
    """

    name: str
    tokens_per_block: int

    def grid(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """‖A_i B_jᵀ‖_* for all i, j: A (a, v, d), B (b, w, d) float64, zero rows as padding -> (a, b) float64."""
        ...

    def paired(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """‖A_i B_iᵀ‖_*: A (k, v, d), B (k, w, d) float64 -> (k,) float64."""
        ...

    def in_order(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Results of many independent jobs that use this method, in the order of the jobs."""
        ...


def nuclear_norms_on(device: str, workers: int | None = None) -> NuclearNorms:
    """The method for a device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``."""
    return Eigenvalues(workers) if device == "cpu" else Polar(device)


class Eigenvalues:
    """float64 on the CPU, with block pairs distributed over threads (LAPACK releases the GIL)."""

    name = "eigenvalues"
    # The product of two blocks is 1 024² float64 = 8 MB, which roughly fits into the caches.
    tokens_per_block = 1_024

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or processors()

    def grid(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        a, v, d = A.shape
        b, w, _ = B.shape
        # (a, b, v, w) as a view: BLAS accepts its strided matrices.
        products = (A.reshape(a * v, d) @ B.reshape(b * w, d).T).reshape(a, v, b, w).transpose(0, 2, 1, 3)
        return _by_gram(products)

    def paired(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return _by_gram(A @ B.swapaxes(1, 2))

    def in_order(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        controller, remaining = ThreadpoolController(), iter(jobs)
        with ThreadPoolExecutor(self._workers) as pool:
            while batch := list(islice(remaining, JOBS_PER_THREAD * self._workers)):
                # Each thread works on its own small matrices; with additional BLAS threads, the eigenvalues for 80
                # tokens took five times as long (504 µs instead of 91, 2 cores). The limit is lifted before yielding.
                with controller.limit(limits=1, user_api="blas"):
                    results = list(pool.map(function, batch))
                yield from results


class Polar:
    """Batched matrix products on a torch device.

    Args:
        is_double: use float64; by default if the device supports it.
    """

    name = "polar"

    def __init__(self, device: str, *, is_double: bool | None = None) -> None:
        import torch

        self._torch = torch
        self._device = device
        is_double = not device.startswith("mps") if is_double is None else is_double
        self._dtype = torch.float64 if is_double else torch.float32
        self.floor = 1e-10 if is_double else 1e-6
        self._scales = newton_schulz_scales(self.floor)
        # 4 096² float64 = 134 MB per product, four of them at a time.
        self.tokens_per_block = 4_096

    def grid(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        a, v, d = A.shape
        b, w, _ = B.shape
        left, right = self._tensor(A.reshape(a * v, d)), self._tensor(B.reshape(b * w, d))
        products = (left @ right.T).reshape(a, v, b, w).transpose(1, 2).reshape(a * b, v, w)
        return self._norms(products).reshape(a, b)

    def paired(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return self._norms(self._tensor(A) @ self._tensor(B).mT)

    def in_order(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        yield from map(function, jobs)

    def _tensor(self, X: np.ndarray) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(X)).to(dtype=self._dtype).to(self._device)

    def _norms(self, M: Any) -> np.ndarray:
        """⟨U, M⟩ of each matrix of (k, v, w)."""
        torch = self._torch
        if M.shape[1] > M.shape[2]:
            M = M.mT  # the Gram matrix of the smaller side
        size = torch.linalg.matrix_norm(M, keepdim=True)
        # A zero product (a one-token text has no spread) has a zero norm: any divisor will do.
        U = M / size.where(size > 0, torch.ones_like(size))
        for scale in self._scales:
            U = torch.baddbmm(U, U @ U.mT, U, beta=1.5 * scale, alpha=-0.5 * scale**3)
        # Sum rows on the device, and their sums on the CPU in float64, which not every device has.
        return np.asarray((U * M).sum(dim=2).cpu().double().sum(dim=1).numpy())


def newton_schulz_scales(floor: float) -> list[float]:
    """The scale s of each step, from bounds [l, 1] on the singular values: s² = 3/(1 + l + l²), l ← ½ s l (3 − s² l²).

    This s maps both ends of [l, 1] to the same value, so that the next interval is [l', 1] again. It is at most 1.6977,
    as Chen and Chow have it: √3 would map 1 to a difference of equal numbers, whose rounding may turn its sign. Two
    unscaled steps (s = 1) follow, which converge quadratically.

    Args:
        floor: the smallest singular value, relative to the Frobenius norm, that converges to 1.
    """
    scales: list[float] = []
    low = floor
    while low < 0.999:
        scale = min(LARGEST_SCALE, (3 / (1 + low + low * low)) ** 0.5)
        scales.append(scale)
        low = min(0.5 * scale * value * (3 - (scale * value) ** 2) for value in (low, 1.0))
    return [*scales, 1.0, 1.0]


def singular_value_sums(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Reference: ‖A_i B_iᵀ‖_* from float64 singular values, without the loss of digits in a Gram matrix."""
    return np.linalg.svd(A @ B.transpose(0, 2, 1), compute_uv=False).sum(axis=1)


def _by_gram(M: np.ndarray) -> np.ndarray:
    """Nuclear norms of (…, v, w)."""
    if M.shape[-2] > M.shape[-1]:
        M = M.swapaxes(-1, -2)
    gram = M @ M.swapaxes(-1, -2)
    # Singular values are square roots of the Gram matrix's eigenvalues; rounding can turn a zero one into −1e-17.
    return np.sqrt(np.linalg.eigvalsh(gram).clip(min=0)).sum(axis=-1)
