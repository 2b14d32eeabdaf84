"""The weight terms of λ: constants of a checkpoint, computed once per layer.

M_h = W_o^h W_v^h is the (d, d) map of head h; Σ_h M_h = W_o W_v. The M_h are never formed: they have rank d_h, and
their norms and inner products come from (d_h, d_h) matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


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
