"""NomicBERT, GTE (multilingual, 2024) and Jina v3: BERT's post-norm layer with rotary positions."""

from __future__ import annotations

from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    attended = layer.post_attention_layernorm(Y)
    return layer.post_mlp_layernorm(attended + layer.mlp(attended))


ROTARY_POST_NORM = Family(
    name="rotary-post-norm",
    model_types=("nomic_bert", "gte", "jina_embeddings_v3"),
    layers="layers",
    attention="self_attn",
    query=Projection("self_attn.q_proj"),
    key=Projection("self_attn.k_proj"),
    value=Projection("self_attn.v_proj"),
    output="self_attn.o_proj",
    norm_placement="post",
    finish=_finish,
)
