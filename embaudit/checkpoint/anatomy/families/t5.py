"""The encoder of T5, mT5 and UMT5: GTR, Sentence-T5, Instructor. Unscaled logits, with a relative position bias.

T5 computes the bias in its first layer and returns it before the attention weights; UMT5 has one in every layer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    return layer.layer[-1](Y)


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
    finish=_finish,
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
