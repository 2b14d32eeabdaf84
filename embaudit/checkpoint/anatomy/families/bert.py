"""BERT and models with its layer: RoBERTa, XLM-R, CamemBERT, Electra, ERNIE, MiniLM, E5, BGE, GTE (2023), SimCSE."""

from __future__ import annotations

from typing import Any

import torch

from embaudit.checkpoint.anatomy.family import Family, Projection


def _finish(layer: Any, Y: torch.Tensor, H: torch.Tensor) -> torch.Tensor:
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
    finish=_finish,
)
