"""MPNet: BERT's layer with a relative position bias, shared by all layers and added to the logits."""

from __future__ import annotations

from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
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
    finish=_finish,
    shared_position_bias="encoder.relative_attention_bias",
)
