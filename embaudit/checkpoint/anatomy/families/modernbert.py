"""ModernBERT: pre-norm, W_q, W_k and W_v in one matrix, rotary positions, local attention in most layers.

The first layer has no norm before attention (the embeddings are already normed), so ``read`` is H there.
"""

from __future__ import annotations

from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.mlp(layer.mlp_norm(Y))


MODERNBERT = Family(
    name="modernbert",
    model_types=("modernbert",),
    layers="layers",
    attention="attn",
    query=Projection("attn.Wqkv", "stacked"),
    key=Projection("attn.Wqkv", "stacked"),
    value=Projection("attn.Wqkv", "stacked"),
    output="attn.Wo",
    norm_placement="pre",
    finish=_finish,
)
