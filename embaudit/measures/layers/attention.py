"""The attention terms of λ: inner products of the heads' PA, for texts of any length.

P = I − 11ᵀ/n subtracts the column means. ⟨PA_h, PA_h'⟩_F for all pairs of heads yields every variant: the diagonal is
‖PA_h‖_F², and the mean over all entries is ‖PĀ‖_F² of the head-averaged Ā.
"""

from __future__ import annotations

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
