"""Decoders: a layer of Llama, Gemma or GPT. docs/families.md lists all families."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


# Llama's layer: pre-norm, rotary positions, grouped queries. E5-Mistral, GTE-Qwen2, Qwen3-Embedding, EuroBERT.
#
# Qwen3 norms each head's queries and keys; Phi-3 has W_q, W_k and W_v in one matrix; EuroBERT is bidirectional.
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


# Gemma: the first is a Llama; since Gemma 2 each branch has a norm before and after it (BGE-Multilingual-Gemma2).
#
# Gemma 2 soft-caps its logits; Gemma 3 norms each head's queries and keys instead. EmbeddingGemma is a bidirectional
# Gemma 3.
def _finish_gemma(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.post_feedforward_layernorm(layer.mlp(layer.pre_feedforward_layernorm(Y)))


GEMMA: Family = replace(LLAMA, name="gemma", model_types=("gemma",))
GEMMA2: Family = replace(
    LLAMA,
    name="gemma2",
    model_types=("gemma2",),
    norm_placement="sandwich",
    branch="post_attention_layernorm",
    finish=_finish_gemma,
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


# GPT-2: pre-norm, with W_q, W_k and W_v in one transposed matrix (Conv1D).
def _finish_gpt2(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
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
    finish=_finish_gpt2,
)


def _finish_parallel(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.mlp(layer.post_attention_layernorm(H))


# GPT-NeoX and Pythia: query, key and value rows head by head in one matrix; attention and MLP in parallel.
#
# The config can also make them sequential, as in other pre-norm models: two families share the model type.
def _finish_gpt_neox(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.mlp(layer.post_attention_layernorm(Y))


GPT_NEOX = Family(
    name="gpt-neox",
    model_types=("gpt_neox",),
    fits=lambda config: bool(config.use_parallel_residual),
    layers="layers",
    attention="attention",
    query=Projection("attention.query_key_value", "interleaved"),
    key=Projection("attention.query_key_value", "interleaved"),
    value=Projection("attention.query_key_value", "interleaved"),
    output="attention.dense",
    norm_placement="parallel",
    finish=_finish_parallel,
)
GPT_NEOX_SEQUENTIAL = replace(
    GPT_NEOX,
    name="gpt-neox-sequential",
    fits=lambda config: not config.use_parallel_residual,
    norm_placement="pre",
    finish=_finish_gpt_neox,
)
