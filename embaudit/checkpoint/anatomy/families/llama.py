"""Llama's layer: pre-norm, rotary positions, grouped queries. E5-Mistral, GTE-Qwen2, Qwen3-Embedding, EuroBERT.

Qwen3 norms each head's queries and keys; Phi-3 has W_q, W_k and W_v in one matrix; EuroBERT is bidirectional.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.mlp(layer.post_attention_layernorm(Y))


LLAMA = Family(
    name="llama",
    model_types=("llama", "mistral", "qwen2", "eurobert"),
    layers="layers",
    attention="self_attn",
    query=Projection("self_attn.q_proj"),
    key=Projection("self_attn.k_proj"),
    value=Projection("self_attn.v_proj"),
    output="self_attn.o_proj",
    norm_placement="pre",
    finish=_finish,
)
QWEN3 = replace(LLAMA, name="qwen3", model_types=("qwen3",), query_norm="self_attn.q_norm")
_FUSED = Projection("self_attn.qkv_proj", "stacked")
PHI3 = replace(LLAMA, name="phi3", model_types=("phi3",), query=_FUSED, key=_FUSED, value=_FUSED)
