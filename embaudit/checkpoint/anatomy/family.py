"""Declares an architecture family: where a transformer layer keeps what the measures read.

A layer takes its input H, adds the output Z of attention, and computes its output X from Y = Z + H:

    Z = Σ_h A_h · V_h · W_o^hᵀ + b_o            (if a family has a norm after W_o, Z is that norm's output)

Paths are dotted module names relative to a layer. A declaration is data; ``model`` binds it to a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedConfig, PreTrainedModel

Part = Literal["query", "key", "value"]
PARTS: tuple[Part, ...] = ("query", "key", "value")
# post: Y is normed after the residual. pre: attention reads norm(H). sandwich: pre, and a norm after W_o as well.
# parallel: attention and MLP both read norms of H, and both are added to it.
NormPlacement = Literal["post", "pre", "sandwich", "parallel"]
# separate: its own matrix. stacked: rows of all queries, then keys, then values. interleaved: query, key and value rows
# of head 0, then of head 1, ...
Fused = Literal["separate", "stacked", "interleaved"]


@dataclass(frozen=True)
class Projection:
    """Where the rows of W_q, W_k or W_v are."""

    path: str
    fused: Fused = "separate"


@dataclass(frozen=True)
class Family:
    """One architecture family.

    Attributes:
        model_types: ``config.model_type`` of the checkpoints it fits.
        layers: path to the list of layers, or a function that returns them in the order in which they run (a layer
            that runs several times is listed several times).
        attention: the module that takes H or norm(H) and returns the attention weights.
        query, key, value: the projections.
        output: the module of W_o; its output is Σ_h A_h V_h W_o^hᵀ + b_o.
        norm_placement: see ``NormPlacement``.
        finish: computes X from the layer, Y and H: the rest of the layer as implemented in transformers. Tests compare
            it with the layer's real output, to detect a changed layer.
        fits: condition on the config; distinguishes families that share a model type.
        weights_at: index of the attention weights in the return value of ``attention``.
        branch: the module whose output is Z, if not ``output``.
        query_norm: the module that norms each head's queries, if there is one. Scaling W_q then has no effect; scaling
            the norm's gain does instead.
        query_norm_offset: that norm's gain is its weight plus this.
        position_bias: the table (buckets, heads) of a bias added to the logits, relative to each layer.
        shared_position_bias: the same, relative to the model, if all layers share one table.
        softcaps: whether attention soft-caps its logits when the config has ``attn_logit_softcapping``. The field alone
            is not enough: Gemma 3 has it, too.
    """

    name: str
    model_types: tuple[str, ...]
    layers: str | Callable[[PreTrainedModel], Sequence[nn.Module]]
    attention: str
    query: Projection
    key: Projection
    value: Projection
    output: str
    norm_placement: NormPlacement
    finish: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]
    fits: Callable[[PreTrainedConfig], bool] | None = None
    weights_at: int = 1
    branch: str | None = None
    query_norm: str | None = None
    query_norm_offset: float = 0.0
    position_bias: str | None = None
    shared_position_bias: str | None = None
    softcaps: bool = False

    def projection(self, part: Part) -> Projection:
        """Where W_q, W_k or W_v is."""
        return {"query": self.query, "key": self.key, "value": self.value}[part]
