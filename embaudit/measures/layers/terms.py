"""The attention and the weight terms of λ.

P = I − 11ᵀ/n subtracts the column means. ⟨PA_h, PA_h'⟩_F for all pairs of heads, for texts of any length, yields every
variant: the diagonal is ‖PA_h‖_F², and the mean over all entries is ‖PĀ‖_F² of the head-averaged Ā.

M_h = W_o^h W_v^h is the (d, d) map of head h; Σ_h M_h = W_o W_v. These are constants of a checkpoint, computed once per
layer. The M_h are never formed: they have rank d_h, and their norms and inner products come from (d_h, d_h) matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
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
        value_norm=torch.linalg.matrix_norm(V, 2).cpu().numpy(),
        dimension=dimension,
    )


def _operator_norm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """‖left·right‖_op of (B, d, k) and (B, k, d'), reduced to (k, k) matrices (or smaller) by QR on both sides."""
    of_left = torch.linalg.qr(left, mode="r").R
    of_right = torch.linalg.qr(right.transpose(1, 2), mode="r").R
    return torch.linalg.matrix_norm(of_left @ of_right.transpose(1, 2), 2)
