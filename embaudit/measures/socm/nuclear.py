"""Nuclear norms ‖R₁R₂ᵀ‖_* of many pairs of texts: what tr((Σ₁^½ Σ₂ Σ₁^½)^½) costs without a d × d matrix.

With RᵀR = Σ, the singular values of R₁R₂ᵀ (n₁ × n₂) are those of Σ₁^½Σ₂^½. Two methods:

- ``Eigenvalues`` (CPU, float64): roots of the eigenvalues of the smaller side's Gram matrix. 2·n₁·n₂·d operations for
  the product, 2·n₁²·n₂ for the Gram and 4n₁³/3 for its eigenvalues. A singular value of zero comes out as 1e-8 of the
  largest.
- ``Polar`` (a GPU): ‖M‖_* = ⟨U, M⟩ with U the orthogonal polar factor of M, by Newton–Schulz steps
  U ← ½ s U (3 − s² UᵀU), scaled so that each step multiplies small singular values by up to 2.6 (Chen and Chow 2014,
  "A stable scaling of Newton-Schulz for improving the sign function computation of a Hermitian matrix"). Matrix
  products only, which GPUs batch; and ⟨U, M⟩ forgives errors in U where M is small, so that float32 (MPS has no
  float64) loses 1e-6 of the norm, and not the 1e-3 that roots of float32 eigenvalues lose. Singular values below
  ``floor``·‖M‖_F may be missed: at most n·floor of the norm.

Either way ``pairs.checked`` compares a random sample with singular values in float64 in the same run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

Job = TypeVar("Job")
Result = TypeVar("Result")
# Block pairs that the threads work on between two results: enough that waiting for the last one costs little.
JOBS_PER_THREAD = 8


class NuclearNorms(Protocol):
    """One way to compute nuclear norms of products.

    Attributes:
        name: for the record.
        tokens_per_block: token rows of one block; two blocks' product is its square.
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
        """Results of many independent jobs, each of which calls this method, in the order of the jobs."""
        ...


def nuclear_norms_on(device: str, workers: int | None = None) -> NuclearNorms:
    """The method for a device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``."""
    return Eigenvalues(workers) if device == "cpu" else Polar(device)


class Eigenvalues:
    """The float64 route on the CPU, block pairs spread over threads (LAPACK releases the interpreter lock)."""

    name = "eigenvalues"
    # Two blocks' product is 1 024² float64 = 8 MB, which stays near the caches.
    tokens_per_block = 1_024

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or os.cpu_count() or 1

    def grid(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        a, v, d = A.shape
        b, w, _ = B.shape
        # (a, b, v, w) as a view: its matrices are strided, which BLAS takes as they are.
        products = (A.reshape(a * v, d) @ B.reshape(b * w, d).T).reshape(a, v, b, w).transpose(0, 2, 1, 3)
        return _by_gram(products)

    def paired(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return _by_gram(A @ B.swapaxes(1, 2))

    def in_order(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        controller, remaining = ThreadpoolController(), iter(jobs)
        with ThreadPoolExecutor(self._workers) as pool:
            while batch := list(islice(remaining, JOBS_PER_THREAD * self._workers)):
                # Each thread has small matrices of its own; with BLAS threads below them the eigenvalues of 80 tokens
                # took five times as long (504 µs against 91, 2 cores). The limit ends before results are handed out.
                with controller.limit(limits=1, user_api="blas"):
                    results = list(pool.map(function, batch))
                yield from results


class Polar:
    """Batched matrix products on a torch device.

    Args:
        is_double: float64; default wherever the device has it.
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
        # 4 096² float64 = 134 MB a product, four of them at a time.
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
            M = M.mT  # the Gram of the smaller side
        size = torch.linalg.matrix_norm(M, keepdim=True)
        # A zero product (a one-token text, whose spread is zero) has a zero norm: any divisor will do.
        U = M / size.where(size > 0, torch.ones_like(size))
        for scale in self._scales:
            U = torch.baddbmm(U, U @ U.mT, U, beta=1.5 * scale, alpha=-0.5 * scale**3)
        # Rows are summed here, the rows' sums in float64, which not every device has.
        return np.asarray((U * M).sum(dim=2).cpu().double().sum(dim=1).numpy())


def newton_schulz_scales(floor: float) -> list[float]:
    """The scale s of each step, from bounds [l, 1] on the singular values: s² = 3/(1 + l + l²), l ← ½ s l (3 − s² l²).

    With that s both ends of [l, 1] are mapped to the same value, so that the next interval is [l', 1] again. Two plain
    steps (s = 1) follow, which converge quadratically.

    Args:
        floor: the smallest singular value (against the Frobenius norm) that is brought to 1.
    """
    scales: list[float] = []
    low = floor
    while low < 0.999:
        scale = (3 / (1 + low + low * low)) ** 0.5
        scales.append(scale)
        low = 0.5 * scale * low * (3 - (scale * low) ** 2)
    return [*scales, 1.0, 1.0]


def singular_value_sums(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """‖A_i B_iᵀ‖_* from singular values in float64, which lose no digits to a Gram matrix: the reference."""
    return np.linalg.svd(A @ B.transpose(0, 2, 1), compute_uv=False).sum(axis=1)


def _by_gram(M: np.ndarray) -> np.ndarray:
    """Nuclear norms of (…, v, w)."""
    if M.shape[-2] > M.shape[-1]:
        M = M.swapaxes(-1, -2)
    gram = M @ M.swapaxes(-1, -2)
    # A singular value is the root of a Gram eigenvalue; rounding can leave a zero one at −1e-17.
    return np.sqrt(np.linalg.eigvalsh(gram).clip(min=0)).sum(axis=-1)
