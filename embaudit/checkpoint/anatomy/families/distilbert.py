"""DistilBERT: BERT's layer under other names, with the norm outside the attention module."""

from __future__ import annotations

from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
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
    finish=_finish,
)
