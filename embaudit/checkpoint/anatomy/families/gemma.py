"""Gemma: the first is a Llama; since Gemma 2 each branch has a norm before and after it (BGE-Multilingual-Gemma2).

Gemma 2 soft-caps its logits; Gemma 3 norms each head's queries and keys instead. EmbeddingGemma is a bidirectional
Gemma 3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from embaudit.checkpoint.anatomy.families.llama import LLAMA
from embaudit.checkpoint.anatomy.family import Family


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.post_feedforward_layernorm(layer.mlp(layer.pre_feedforward_layernorm(Y)))


GEMMA: Family = replace(LLAMA, name="gemma", model_types=("gemma",))
GEMMA2: Family = replace(
    LLAMA,
    name="gemma2",
    model_types=("gemma2",),
    norm_placement="sandwich",
    branch="post_attention_layernorm",
    finish=_finish,
    softcaps=True,
)
GEMMA3: Family = replace(
    GEMMA2,
    name="gemma3",
    model_types=("gemma3_text",),
    softcaps=False,
    query_norm="self_attn.q_norm",
    query_norm_offset=1.0,
)
