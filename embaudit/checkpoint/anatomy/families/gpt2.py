"""GPT-2: pre-norm, with W_q, W_k and W_v in one transposed matrix (Conv1D)."""

from __future__ import annotations

from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.mlp(layer.ln_2(Y))


GPT2 = Family(
    name="gpt2",
    model_types=("gpt2",),
    layers="h",
    attention="attn",
    query=Projection("attn.c_attn", "stacked"),
    key=Projection("attn.c_attn", "stacked"),
    value=Projection("attn.c_attn", "stacked"),
    output="attn.c_proj",
    norm_placement="pre",
    finish=_finish,
)
