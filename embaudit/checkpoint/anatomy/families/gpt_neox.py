"""GPT-NeoX and Pythia: query, key and value rows head by head in one matrix; attention and MLP in parallel.

The config can also make them sequential, as in other pre-norm models: two families share the model type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish_parallel(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return Y + layer.mlp(layer.post_attention_layernorm(H))


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
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
    finish=_finish,
)
