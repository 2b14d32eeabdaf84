"""The families that embaudit knows: where each keeps the parts of a layer. docs/families.md lists them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from embaudit.checkpoint.anatomy.family import Family, Projection

if TYPE_CHECKING:
    from transformers import PreTrainedModel


# BERT and models with its layer: RoBERTa, XLM-R, CamemBERT, Electra, ERNIE, MiniLM, E5, BGE, GTE (2023), SimCSE.
def _finish_bert(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    attended = layer.attention.output.LayerNorm(Y)
    return layer.output(layer.intermediate(attended), attended)


BERT = Family(
    name="bert",
    model_types=("bert", "roberta", "xlm-roberta", "camembert", "electra", "ernie"),
    layers="encoder.layer",
    attention="attention.self",
    query=Projection("attention.self.query"),
    key=Projection("attention.self.key"),
    value=Projection("attention.self.value"),
    output="attention.output.dense",
    norm_placement="post",
    finish=_finish_bert,
)


# DistilBERT: BERT's layer under other names, with the norm outside the attention module.
def _finish_distilbert(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    attended = layer.sa_layer_norm(Y)
    return layer.output_layer_norm(layer.ffn(attended) + attended)


DISTILBERT = Family(
    name="distilbert",
    model_types=("distilbert",),
    layers="transformer.layer",
    attention="attention",
    query=Projection("attention.q_lin"),
    key=Projection("attention.k_lin"),
    value=Projection("attention.v_lin"),
    output="attention.out_lin",
    norm_placement="post",
    finish=_finish_distilbert,
)


# MPNet: BERT's layer with a relative position bias, shared by all layers and added to the logits.
def _finish_mpnet(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    attended = layer.attention.LayerNorm(Y)
    return layer.output(layer.intermediate(attended), attended)


MPNET = Family(
    name="mpnet",
    model_types=("mpnet",),
    layers="encoder.layer",
    attention="attention.attn",
    query=Projection("attention.attn.q"),
    key=Projection("attention.attn.k"),
    value=Projection("attention.attn.v"),
    output="attention.attn.o",
    norm_placement="post",
    finish=_finish_mpnet,
    shared_position_bias="encoder.relative_attention_bias",
)


# ALBERT: one or a few post-norm layers that run repeatedly with the same weights.
def _albert_layers(model: PreTrainedModel) -> list[nn.Module]:
    """In execution order: step i runs the inner layers of its group, as in ``AlbertTransformer``."""
    steps, groups = model.config.num_hidden_layers, model.encoder.albert_layer_groups
    runs = [groups[int(step / (steps / len(groups)))] for step in range(steps)]
    return [layer for group in runs for layer in group.albert_layers]


def _finish_albert(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    attended = layer.attention.LayerNorm(Y)
    return layer.full_layer_layer_norm(layer.ff_chunk(attended) + attended)


ALBERT = Family(
    name="albert",
    model_types=("albert",),
    layers=_albert_layers,
    attention="attention",
    query=Projection("attention.query"),
    key=Projection("attention.key"),
    value=Projection("attention.value"),
    output="attention.dense",
    norm_placement="post",
    finish=_finish_albert,
)


# The encoder of T5, mT5 and UMT5: GTR, Sentence-T5, Instructor. Unscaled logits, with a relative position bias.
#
# T5 computes the bias in its first layer and returns it before the attention weights; UMT5 has one in every layer.
T5 = Family(
    name="t5",
    model_types=("t5", "mt5"),
    layers="encoder.block",
    attention="layer.0.SelfAttention",
    weights_at=2,
    query=Projection("layer.0.SelfAttention.q"),
    key=Projection("layer.0.SelfAttention.k"),
    value=Projection("layer.0.SelfAttention.v"),
    output="layer.0.SelfAttention.o",
    norm_placement="pre",
    finish=lambda layer, Y, H: layer.layer[-1](Y),
    shared_position_bias="encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
)
UMT5 = replace(
    T5,
    name="umt5",
    model_types=("umt5",),
    weights_at=1,
    shared_position_bias=None,
    position_bias="layer.0.SelfAttention.relative_attention_bias",
)


# NomicBERT, GTE (multilingual, 2024) and Jina v3: BERT's post-norm layer with rotary positions.
def _finish_rotary_post_norm(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
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
    finish=_finish_rotary_post_norm,
)


# ModernBERT: pre-norm, W_q, W_k and W_v in one matrix, rotary positions, local attention in most layers.
#
# The first layer has no norm before attention (the embeddings are already normed), so ``read`` is H there.
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
    finish=lambda layer, Y, H: Y + layer.mlp(layer.mlp_norm(Y)),
)


# Llama's layer: pre-norm, rotary positions, grouped queries. E5-Mistral, GTE-Qwen2, Qwen3-Embedding, EuroBERT.
#
# Qwen3 norms each head's queries and keys; Phi-3 has W_q, W_k and W_v in one matrix; EuroBERT is bidirectional.
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
    finish=lambda layer, Y, H: Y + layer.mlp(layer.post_attention_layernorm(Y)),
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
    finish=lambda layer, Y, H: Y + layer.mlp(layer.ln_2(Y)),
)


# GPT-NeoX and Pythia: query, key and value rows head by head in one matrix; attention and MLP in parallel.
#
# The config can also make them sequential, as in other pre-norm models: two families share the model type.
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
    finish=lambda layer, Y, H: Y + layer.mlp(layer.post_attention_layernorm(H)),
)
GPT_NEOX_SEQUENTIAL = replace(
    GPT_NEOX,
    name="gpt-neox-sequential",
    fits=lambda config: not config.use_parallel_residual,
    norm_placement="pre",
    finish=lambda layer, Y, H: Y + layer.mlp(layer.post_attention_layernorm(Y)),
)


FAMILIES: tuple[Family, ...] = (
    BERT,
    DISTILBERT,
    MPNET,
    ALBERT,
    T5,
    UMT5,
    ROTARY_POST_NORM,
    MODERNBERT,
    LLAMA,
    QWEN3,
    PHI3,
    GEMMA,
    GEMMA2,
    GEMMA3,
    GPT2,
    GPT_NEOX,
    GPT_NEOX_SEQUENTIAL,
)
