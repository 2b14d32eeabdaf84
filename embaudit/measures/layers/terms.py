"""The attention and the weight terms of λ.

P = I − 11ᵀ/n subtracts the column means. ⟨PA_h, PA_h'⟩_F for all pairs of heads, for texts of any length, yields every
variant: the diagonal is ‖PA_h‖_F², and the mean over all entries is ‖PĀ‖_F² of the head-averaged Ā.

M_h = W_o^h W_v^h is the (d, d) map of head h; Σ_h M_h = W_o W_v. These are constants of a checkpoint, computed once per
layer. The M_h are never formed: they have rank d_h, and their norms and inner products come from (d_h, d_h) matrices.

σ_a = ‖PA‖₂: the largest singular value of an attention matrix without its column means (arXiv 2410.24200).

P = I − 11ᵀ/n. For row-stochastic A, PA = PAP. (‖A − 11ᵀ/n‖ is different: an attention sink makes it huge.)

Short texts: eigenvalues of the Gram matrix (PA)(PA)ᵀ in float64, exact to 1e-8. Long texts: Rayleigh–Ritz on a block
Krylov space of G = (PA)ᵀ(PA), whose largest value bounds σ_a² from below. It stops when the leading pair's residual is
at most 5e-4 of it and another step changed it by no more. That shows an eigenvalue of G so near, not that it is the
largest one: where the largest are many and close, σ_a is higher by up to three quarters of the residual. Of 22 848
matrices made to be so, none is beyond the stated 5e-4 (worst 3.7e-4); attention weights come within 1e-6, since the
error of an eigenvalue that stands apart is the residual squared (tests/concentration/test_sigma.py).

Operations per head: exact 2n³ + about 4n³/3, where eigenvalues run far slower than matrix products; Krylov 4·b·n² per
step for blocks of b columns, reading the n² weights twice per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

# Centred weights per step, float64: 2^22 are 32 MB. A text of 8 192 tokens is processed in slices of rows.
WEIGHTS_PER_STEP = 2**22


def centred_products(attention: torch.Tensor) -> torch.Tensor:
    """⟨PA_h, PA_h'⟩_F for every text.

    Args:
        attention: A, (B, H, n, n), rows are queries.

    Returns:
        (B, H, H) float64, no unit.
    """
    import torch

    batch, heads, n, _ = attention.shape
    # Means in float64: an attention sink's column is close to 1 in every row, and the remainder is small.
    mean = attention.mean(dim=2, keepdim=True, dtype=torch.float64)
    rows = max(1, WEIGHTS_PER_STEP // (batch * heads * n))
    products = torch.zeros(batch, heads, heads, dtype=torch.float64, device=attention.device)
    for start in range(0, n, rows):
        centred = (attention[:, :, start : start + rows].double() - mean).flatten(2)
        products += centred @ centred.transpose(1, 2)
    return products


@dataclass(frozen=True)
class ValueOutput:
    """Norms of one layer's W_o W_v, float64, no unit.

    Attributes:
        head_norm: (H,) ‖M_h‖_op.
        norm: ‖Σ_h M_h‖_op = ‖W_o W_v‖_op.
        products: (H, H) ⟨M_h, M_h'⟩_F.
        value_norm: (H,) ‖W_v^h‖_op.
        dimension: d, the width of attention's input.
    """

    head_norm: np.ndarray
    norm: float
    products: np.ndarray
    value_norm: np.ndarray
    dimension: int


def value_output(value: torch.Tensor, output: torch.Tensor) -> ValueOutput:
    """Norms of M_h = W_o^h W_v^h.

    ‖M_h‖_op² is the largest eigenvalue of (W_o^hᵀ W_o^h)(W_v^h W_v^hᵀ), and
    ⟨M_h, M_h'⟩_F = ⟨W_o^hᵀ W_o^h', W_v^h W_v^h'ᵀ⟩_F (by cyclic permutation of the trace).

    Args:
        value: W_v head by head, (H, d_h, d).
        output: W_o head by head, (H, d, d_h).
    """
    import torch

    V, W = value.double(), output.double()
    heads, size, dimension = V.shape
    stacked_values = V.reshape(heads * size, dimension)
    stacked_outputs = W.transpose(1, 2).reshape(heads * size, -1)
    of_values = (stacked_values @ stacked_values.T).view(heads, size, heads, size)
    of_outputs = (stacked_outputs @ stacked_outputs.T).view(heads, size, heads, size)
    products = torch.einsum("aibj,aibj->ab", of_outputs, of_values)
    return ValueOutput(
        head_norm=_operator_norm(W, V).cpu().numpy(),
        norm=float(_operator_norm(stacked_outputs.T[None], stacked_values[None])[0]),
        products=products.cpu().numpy(),
        value_norm=_largest_root(torch.einsum("aiaj->aij", of_values)).cpu().numpy(),
        dimension=dimension,
    )


def _operator_norm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """‖left·right‖_op of (B, d, k) and (B, k, d'); of a small k by QR on both sides, as that of a (k, k) matrix."""
    import torch

    if left.shape[2] < min(left.shape[1], right.shape[2]):
        left, right = torch.linalg.qr(left, mode="r").R, torch.linalg.qr(right.mT, mode="r").R.mT
    product = left @ right
    return _largest_root(product.mT @ product)


def _largest_root(gram: torch.Tensor) -> torch.Tensor:
    """‖M‖_op of each MᵀM (B, k, k): a third of the time of M's singular values, and as exact for the largest."""
    import torch

    return torch.linalg.eigvalsh(gram)[:, -1].clamp(min=0).sqrt()


# Up to this length the exact method is faster on a CPU (benchmarks, sigma).
EXACT_UP_TO = 96
BLOCK = 2
STEPS = 32
# Weights per chunk: on a CPU, 2^21 float32 are 8 MB, which stay in the caches between steps; a GPU needs many matrices
# per launch.
WEIGHTS_PER_CHUNK = {"cpu": 2**21}
ON_OTHER_DEVICES = 2**26
# Stated of σ_a; the residual may be so much of σ_a². If it were the largest for certain, twice as much would do.
RELATIVE_ERROR = 5e-4


def largest_singular_values(attention: torch.Tensor) -> torch.Tensor:
    """σ_a of each matrix.

    Args:
        attention: A, (..., n, n), any floating dtype; rows are queries. Rows need not sum to one.

    Returns:
        (...) float64, no unit; 0 for n = 1.
    """
    import torch

    n = attention.shape[-1]
    A = attention.reshape(-1, n, n)
    if n <= EXACT_UP_TO:
        return exact(A).view(attention.shape[:-2])
    weights = WEIGHTS_PER_CHUNK.get(attention.device.type, ON_OTHER_DEVICES)
    chunks = torch.split(A, max(1, weights // n**2))
    return torch.cat([krylov(chunk) for chunk in chunks]).view(attention.shape[:-2])


def exact(A: torch.Tensor) -> torch.Tensor:
    """(B,) float64 from (B, n, n), from the eigenvalues of the Gram matrix."""
    import torch

    PA, scale = _centred(A.double())
    PA /= scale
    return torch.linalg.eigvalsh(PA @ PA.transpose(1, 2))[:, -1].clamp(min=0).sqrt() * scale[:, 0, 0]


def krylov(A: torch.Tensor, relative_error: float = RELATIVE_ERROR) -> torch.Tensor:
    """(B,) float64 from (B, n, n), by a block Krylov space; matrices that do not converge are computed exactly.

    With Q an orthonormal basis of span(Ω, GΩ, G²Ω, …), Ω (n, b) random and seeded, the largest eigenvalue θ of QᵀGQ is
    a lower bound of σ_a², and ‖Gv − θv‖ for its vector v bounds the distance to the closest eigenvalue of G.
    """
    import torch

    batch, n, _ = A.shape
    PA, scale = _centred(A if A.dtype in (torch.float32, torch.float64) else A.float())
    generator = torch.Generator(device="cpu").manual_seed(n)
    start = torch.randn(n, BLOCK, generator=generator, dtype=torch.float64).to(PA)
    new = torch.linalg.qr(start.expand(batch, n, BLOCK)).Q
    # The basis and G times the basis, block by block, for a PA of Frobenius norm 1.
    basis, images = new, _gram_times(PA, scale, new)
    before = torch.zeros(batch, dtype=torch.float64, device=A.device)
    for step in range(STEPS):
        projected = (basis.transpose(1, 2) @ images).double()
        values, vectors = torch.linalg.eigh((projected + projected.transpose(1, 2)) / 2)
        theta, vector = values[:, -1].clamp(min=0), vectors[:, :, -1:].to(PA)
        residual = (images @ vector - theta.to(PA)[:, None, None] * (basis @ vector)).norm(dim=(1, 2)).double()
        sigma = theta.sqrt() * scale[:, 0, 0].double()
        # A small residual means that θ is close to an eigenvalue; if θ no longer changes, it is the largest one.
        close = (residual <= relative_error * theta) & (theta - before <= relative_error * theta)
        before = theta
        if bool(close.all()):
            return sigma
        if step + 1 == STEPS or basis.shape[2] + BLOCK > n:
            break
        # Two projections are enough to make the new block orthogonal to the basis.
        new = images[:, :, -BLOCK:]
        for _ in range(2):
            new = new - basis @ (basis.transpose(1, 2) @ new)
        new = torch.linalg.qr(new).Q
        basis = torch.cat([basis, new], dim=2)
        images = torch.cat([images, _gram_times(PA, scale, new)], dim=2)
    left = ~close
    sigma[left] = exact(A[left])
    return sigma


def _centred(A: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """PA and its Frobenius norm, (B, n, n) and (B, 1, 1); the norm is 1 where PA is zero.

    A sink's column of nearly equal weights leaves small differences. They are taken from the first row, so that their
    mean is rounded in their own size, not in that of the weights: (Aᵀ − ā1ᵀ)(A − 1āᵀ) as a product of A loses them.
    """
    differences = A - A[:, :1]
    differences -= differences.mean(dim=1, keepdim=True)
    norm = differences.flatten(1).norm(dim=1)[:, None, None]
    return differences, norm.where(norm > 0, 1)


def _gram_times(PA: torch.Tensor, scale: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """G·block = (PA)ᵀ PA block / scale².

    The few columns are stored as rows: a batch of (b, n) by (n, n) runs seven times as fast as (n, n) by (n, b).
    """
    rows = block.transpose(1, 2).contiguous()
    return ((rows @ PA.transpose(1, 2) / scale) @ PA / scale).transpose(1, 2)
