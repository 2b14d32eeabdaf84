"""ALBERT: one or a few post-norm layers that run repeatedly with the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from embaudit.checkpoint.anatomy.family import Family, Projection

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def _layers(model: PreTrainedModel) -> list[nn.Module]:
    """In execution order: step i runs the inner layers of its group, as in ``AlbertTransformer``."""
    steps, groups = model.config.num_hidden_layers, model.encoder.albert_layer_groups
    runs = [groups[int(step / (steps / len(groups)))] for step in range(steps)]
    return [layer for group in runs for layer in group.albert_layers]


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
    attended = layer.attention.LayerNorm(Y)
    return layer.full_layer_layer_norm(layer.ff_chunk(attended) + attended)


ALBERT = Family(
    name="albert",
    model_types=("albert",),
    layers=_layers,
    attention="attention",
    query=Projection("attention.query"),
    key=Projection("attention.key"),
    value=Projection("attention.value"),
    output="attention.dense",
    norm_placement="post",
    finish=_finish,
)
