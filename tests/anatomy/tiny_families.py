"""A tiny model with random weights of every model type that a family declares: 2 layers, 4 heads, d = 16 or so.

No parameter keeps a neutral value: with biases of 0 and gains of 1 a forgotten bias or norm would not be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
import transformers as t
from some_rows import mostly_slow

ROWS, D, LAYERS, HEADS, KV_HEADS, HEAD_SIZE, POSITIONS = 50, 16, 2, 4, 2, 6, 32
# Texts are longer than the window of local layers, so that a window shows in A.
N, WINDOW = 7, 3
IDS = torch.tensor([[7, 12, 31, 8, 44, 19, 5], [23, 6, 17, 40, 9, 35, 28]])


@dataclass(frozen=True)
class Tiny:
    """One tiny model and what is known about it without embaudit.

    Attributes:
        family: name of the family that must be found.
        causal: whether a token attends to itself and what stands before it only.
        local: layers that attend to a window only.
        position_bias: whether positions are added to the logits, so that A is not uniform without queries.
        grouped: whether two query heads share a value head.
        final_norm: the module behind the last layer.
    """

    family: str
    build: Callable[[], Any]
    causal: bool = False
    local: tuple[int, ...] = ()
    position_bias: bool = False
    grouped: bool = False
    final_norm: str | None = None


def _auto(config: Any) -> Any:
    # transformers 4 gives Gemma 2 a kernel without soft-capping.
    kernel = "eager" if config.model_type == "gemma2" else None
    return t.AutoModel.from_config(config, attn_implementation=kernel)


def _config(kind: type | str) -> Any:
    """A config class; one of those that transformers 4 lacks is named, so that its test is skipped there."""
    if isinstance(kind, str) and not hasattr(t, kind):
        pytest.skip(f"transformers {t.__version__} has no {kind}")
    return getattr(t, kind) if isinstance(kind, str) else kind


def _bert_like(config: type | str, **changes: Any) -> Callable[[], Any]:
    sizes = {"vocab_size": ROWS, "hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    sizes |= {"intermediate_size": 24, "max_position_embeddings": POSITIONS, "pad_token_id": 1, "type_vocab_size": 2}
    return lambda: _auto(_config(config)(**sizes | changes))


def _llama_like(config: type | str, **changes: Any) -> Callable[[], Any]:
    """Heads of 6 dimensions, so that H · d_h is not d."""
    sizes = {"vocab_size": ROWS, "hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    sizes |= {"num_key_value_heads": KV_HEADS, "intermediate_size": 24, "max_position_embeddings": POSITIONS}
    sizes |= {"head_dim": HEAD_SIZE, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
    return lambda: _auto(_config(config)(**sizes | changes))


def _t5(model: Any, config: type) -> Callable[[], Any]:
    sizes = {"vocab_size": ROWS, "d_model": D, "d_kv": HEAD_SIZE, "d_ff": 24, "num_layers": LAYERS, "num_heads": HEADS}
    return lambda: model(config(**sizes, relative_attention_num_buckets=8, relative_attention_max_distance=16))


def _gpt_neox(parallel: bool) -> Callable[[], Any]:
    sizes = {"vocab_size": ROWS, "hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    sizes |= {"intermediate_size": 24, "max_position_embeddings": POSITIONS, "use_parallel_residual": parallel}
    return lambda: _auto(t.GPTNeoXConfig(**sizes))


DISTILBERT = {"vocab_size": ROWS, "dim": D, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 24}
GPT2 = {"vocab_size": ROWS, "n_embd": D, "n_layer": LAYERS, "n_head": HEADS, "n_positions": POSITIONS}
ALTERNATING = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": WINDOW}
GEMMA = {"causal": True, "grouped": True, "final_norm": "norm"}
GEMMA3 = {**ALTERNATING, "query_pre_attn_scalar": HEAD_SIZE}

TINY = {
    "bert": Tiny("bert", _bert_like(t.BertConfig)),
    "roberta": Tiny("bert", _bert_like(t.RobertaConfig)),
    "xlm-roberta": Tiny("bert", _bert_like(t.XLMRobertaConfig)),
    "camembert": Tiny("bert", _bert_like(t.CamembertConfig)),
    "electra": Tiny("bert", _bert_like(t.ElectraConfig, embedding_size=8)),
    "ernie": Tiny("bert", _bert_like(t.ErnieConfig)),
    "distilbert": Tiny("distilbert", lambda: _auto(t.DistilBertConfig(**DISTILBERT))),
    "mpnet": Tiny("mpnet", _bert_like(t.MPNetConfig), position_bias=True),
    "albert": Tiny("albert", _bert_like(t.AlbertConfig, embedding_size=8)),
    # 4 steps over 2 groups of 2 inner layers: each runs twice.
    "albert, groups": Tiny(
        "albert",
        _bert_like(t.AlbertConfig, embedding_size=8, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2),
    ),
    "t5": Tiny("t5", _t5(t.T5EncoderModel, t.T5Config), position_bias=True, final_norm="encoder.final_layer_norm"),
    "mt5": Tiny("t5", _t5(t.MT5EncoderModel, t.MT5Config), position_bias=True, final_norm="encoder.final_layer_norm"),
    "umt5": Tiny(
        "umt5", _t5(t.UMT5EncoderModel, t.UMT5Config), position_bias=True, final_norm="encoder.final_layer_norm"
    ),
    "nomic_bert": Tiny("rotary-post-norm", _bert_like("NomicBertConfig")),
    "gte": Tiny("rotary-post-norm", _bert_like("GteConfig")),
    "jina_embeddings_v3": Tiny("rotary-post-norm", _bert_like("JinaEmbeddingsV3Config")),
    "modernbert": Tiny(
        "modernbert",
        _bert_like(
            t.ModernBertConfig,
            attention_bias=True,
            mlp_bias=True,
            norm_bias=True,
            local_attention=2 * (WINDOW - 1),
            layer_types=["full_attention", "sliding_attention"],
            bos_token_id=2,
            eos_token_id=3,
            cls_token_id=2,
            sep_token_id=3,
        ),
        local=(1,),
        final_norm="final_norm",
    ),
    "llama": Tiny(
        "llama", _llama_like(t.LlamaConfig, attention_bias=True), causal=True, grouped=True, final_norm="norm"
    ),
    "mistral": Tiny(
        "llama",
        _llama_like(t.MistralConfig, sliding_window=WINDOW),
        causal=True,
        local=(0, 1),
        grouped=True,
        final_norm="norm",
    ),
    "qwen2": Tiny("llama", _llama_like(t.Qwen2Config), causal=True, grouped=True, final_norm="norm"),
    "eurobert": Tiny("llama", _llama_like("EuroBertConfig"), grouped=True, final_norm="norm"),
    "qwen3": Tiny("qwen3", _llama_like(t.Qwen3Config), causal=True, grouped=True, final_norm="norm"),
    "phi3": Tiny("phi3", _llama_like(t.Phi3Config, head_dim=4), causal=True, grouped=True, final_norm="norm"),
    "gemma": Tiny("gemma", _llama_like(t.GemmaConfig), **GEMMA),
    "gemma2": Tiny("gemma2", _llama_like(t.Gemma2Config, **GEMMA3, attn_logit_softcapping=2.0), **GEMMA, local=(0,)),
    "gemma3_text": Tiny("gemma3", _llama_like(t.Gemma3TextConfig, **GEMMA3), **GEMMA, local=(0,)),
    "gemma3_text, both ways": Tiny(
        "gemma3",
        _llama_like(t.Gemma3TextConfig, **GEMMA3, use_bidirectional_attention=True),
        **GEMMA | {"causal": False},
        local=(0,),
    ),
    "gpt2": Tiny("gpt2", lambda: _auto(t.GPT2Config(**GPT2)), causal=True, final_norm="ln_f"),
    "gpt_neox": Tiny("gpt-neox", _gpt_neox(True), causal=True, final_norm="final_layer_norm"),
    "gpt_neox, sequential": Tiny("gpt-neox-sequential", _gpt_neox(False), causal=True, final_norm="final_layer_norm"),
}


# What `make test` measures numbers on; `make test-all` does the other families. Each stands for one way of attending:
REPRESENTATIVES = (
    "bert",  # norms behind the residual, three matrices with biases
    "llama",  # norms before it, causal, two query heads on one value head, H · d_h is not d
    "gpt2",  # one transposed matrix for queries, keys and values, with biases
    "t5",  # a position bias on the logits, which layers share; logits are not divided by √d
    "gemma3_text",  # a window in one layer, norms on both sides, a norm of queries with gain 1 + w
    "gpt_neox",  # MLP beside attention; queries, keys and values interleaved head by head
)


def representatives_first(names: Iterable[str] = TINY, also: Iterable[str] = ()) -> pytest.MarkDecorator:
    """Parametrise by model: the representatives and those named for a way of their own are fast, the others slow."""
    names = list(names)
    return pytest.mark.parametrize("name", mostly_slow(names, {*REPRESENTATIVES, *also} & {*names}))


@cache
def tiny_model(name: str, dtype: torch.dtype = torch.float32) -> Any:
    """The model of that name, ready to run: one for all tests, which leave it as they found it."""
    generator = torch.Generator().manual_seed(13)
    # Whoever asks first may be in inference mode, and the model is everybody's.
    with torch.inference_mode(False), torch.no_grad():
        model = TINY[name].build()
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(0.4 * noise if parameter.dim() > 1 else parameter + 0.3 * noise)
        return model.to(dtype).eval()


def build(name: str, dtype: torch.dtype = torch.float32) -> Any:
    """A copy of that model for a test that changes it."""
    return deepcopy(tiny_model(name, dtype))
