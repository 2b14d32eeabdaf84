"""Declares an architecture family: where a transformer layer keeps what the measures read.

A layer takes its input H, adds the output Z of attention, and computes its output X from Y = Z + H:

    Z = Σ_h A_h · V_h · W_o^hᵀ + b_o            (if a family has a norm after W_o, Z is that norm's output)

Paths are dotted module names relative to a layer. A declaration is data; ``model`` binds it to a checkpoint.

A family bound to one model: its layers in order, its heads, and its weights head by head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from embaudit.checkpoint.streamed import computes_in
from embaudit.words.errors import NotMeasurable

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


@dataclass(frozen=True)
class Anatomy:
    """Where H, A, Z, Y and X of a model are, and its weights.

    Attributes:
        layers: in the order in which they run; ALBERT's single layer is listed several times.
        heads: query heads per layer, H.
        value_heads: key and value heads; fewer than ``heads`` with grouped queries.
        head_size: d_h.
    """

    model: PreTrainedModel
    family: Family
    layers: tuple[nn.Module, ...]
    heads: int
    value_heads: int
    head_size: int

    @property
    def shares_layers(self) -> bool:
        """Whether layers share weights."""
        return len({id(layer) for layer in self.layers}) < len(self.layers)

    @property
    def reads_norm(self) -> bool:
        """Whether attention reads norm(H) instead of H."""
        return self.family.norm_placement != "post"

    def heads_of(self, part: Part) -> int:
        """Number of heads of W_q, W_k or W_v."""
        return self.heads if part == "query" else self.value_heads

    def rows(self, part: Part) -> torch.Tensor:
        """Rows of W_q, W_k or W_v in the matrix that contains them, head by head: (heads_of(part) · d_h,) int64."""
        import torch

        fused = self.family.projection(part).fused
        if fused == "interleaved":
            per_head = torch.arange(len(PARTS) * self.heads * self.head_size).view(self.heads, len(PARTS), -1)
            return per_head[:, PARTS.index(part)].flatten()
        before = PARTS[: PARTS.index(part)] if fused == "stacked" else ()
        start = sum(self.heads_of(other) for other in before) * self.head_size
        return torch.arange(start, start + self.heads_of(part) * self.head_size)

    def matrix(self, layer: int, part: Part) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The matrix (out, in) that contains ``rows`` of W_q, W_k or W_v, and its bias (out,), if any."""
        return self._read(layer, self.family.projection(part).path)

    def value_weights(self, layer: int) -> torch.Tensor:
        """W_v head by head, (H, d_h, d); value heads are repeated for grouped queries."""
        weight, _ = self.matrix(layer, "value")
        per_head = weight[self.rows("value").to(weight.device)].view(self.value_heads, self.head_size, -1)
        return per_head.repeat_interleave(self.heads // self.value_heads, dim=0)

    def output_weights(self, layer: int) -> torch.Tensor:
        """W_o head by head, (H, d, d_h): Z = Σ_h (A_h V_h) W_o^hᵀ + b_o."""
        weight, _ = self._read(layer, self.family.output)
        return weight.view(len(weight), self.heads, self.head_size).transpose(0, 1)

    def attend(self, layer: int, attention: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """Σ_h A_h V_h W_o^hᵀ + b_o from the declared weights: the expected output of the module ``output``.

        Args:
            attention: A, (B, H, n, n).
            read: what attention reads, H or norm(H), (B, n, d).

        Returns:
            (B, n, d) in the dtype of ``read``.
        """
        import torch

        _, value_bias = self.matrix(layer, "value")
        _, output_bias = self._read(layer, self.family.output)
        V = torch.einsum("bnd,hed->bhne", read, self.value_weights(layer))
        if value_bias is not None:
            per_head = value_bias[self.rows("value").to(value_bias.device)].view(self.value_heads, 1, self.head_size)
            V = V + per_head.repeat_interleave(self.heads // self.value_heads, dim=0)
        summed = torch.einsum("bhme,hde->bmd", attention.to(V.dtype) @ V, self.output_weights(layer))
        return summed if output_bias is None else summed + output_bias

    def _read(self, layer: int, path: str) -> tuple[torch.Tensor, torch.Tensor | None]:
        """A linear map's matrix and bias in the precision that the model computes in, wherever they are kept."""
        dtype = computes_in(self.model)
        weight, bias = _linear(self.part_of(layer, path))
        return weight.to(dtype), None if bias is None else bias.to(dtype)

    def part_of(self, layer: int, path: str) -> nn.Module:
        """A module of one layer."""
        return self.layers[layer].get_submodule(path)


def anatomy_of(model: PreTrainedModel) -> Anatomy:
    """The anatomy of a loaded model.

    Raises:
        NotMeasurable: if no family is declared for its architecture, or the declared one does not fit.
    """
    from embaudit.checkpoint.anatomy.families import FAMILIES

    config = model.config.get_text_config()
    family = _family_of(config, FAMILIES)
    if family is None:
        known = sorted({kind for family in FAMILIES for kind in family.model_types})
        raise NotMeasurable(
            f"embaudit does not know where {type(model).__name__} (model type {config.model_type!r}) keeps its "
            f"attention branch, W_v and W_o. It knows: {', '.join(known)}.",
            kept="Measures that do not need layers are unaffected.",
            next_step="Declare the family in one small file; see embaudit/checkpoint/anatomy/families.",
        )
    try:
        layers = tuple(_layers(model, family))
        if not layers:
            raise ValueError("it has no layers.")
        heads = int(config.num_attention_heads)
        value_heads = int(getattr(config, "num_key_value_heads", None) or heads)
        anatomy = Anatomy(model, family, layers, heads, value_heads, _head_size(layers[0], family, heads))
        for layer in range(len(layers)):
            _require_parts(anatomy, layer)
    except (AttributeError, RuntimeError, ValueError) as error:
        raise NotMeasurable(
            f"{type(model).__name__} is declared as a {family.name} model but is not built like one: {error}",
            kept="Measures that do not need layers are unaffected.",
            next_step="Report this with the versions that `embaudit doctor` prints.",
        ) from error
    return anatomy


def _family_of(config: PreTrainedConfig, families: Sequence[Family]) -> Family | None:
    of_type = (family for family in families if config.model_type in family.model_types)
    return next((family for family in of_type if family.fits is None or family.fits(config)), None)


def _require_parts(anatomy: Anatomy, layer: int) -> None:
    """Check that every declared part exists, with the shape that the config's number of heads implies.

    Raises:
        AttributeError: if a module is missing.
        ValueError: if a matrix has the wrong shape.
    """
    family = anatomy.family
    for part in PARTS:
        projection = family.projection(part)
        inside: Sequence[Part] = (part,) if projection.fused == "separate" else PARTS
        expected = sum(anatomy.heads_of(each) for each in inside) * anatomy.head_size
        weight, _ = anatomy.matrix(layer, part)
        if len(weight) != expected:
            raise ValueError(f"layer {layer}: {projection.path} has {len(weight)} rows, not {expected}.")
    columns = _linear(anatomy.part_of(layer, family.output))[0].shape[1]
    if columns != anatomy.heads * anatomy.head_size:
        raise ValueError(f"layer {layer}: {family.output} has {columns} columns, unlike the first layer.")
    for path in (family.attention, family.branch, family.query_norm):
        if path is not None:
            anatomy.part_of(layer, path)


def _layers(model: PreTrainedModel, family: Family) -> Sequence[nn.Module]:
    if callable(family.layers):
        return family.layers(model)
    return list(model.get_submodule(family.layers).children())


def _head_size(layer: nn.Module, family: Family, heads: int) -> int:
    """d_h from W_o, in which every head has its own columns."""
    weight, _ = _linear(layer.get_submodule(family.output))
    if weight.shape[1] % heads:
        raise ValueError(f"W_o has {weight.shape[1]} columns for {heads} heads.")
    return int(weight.shape[1] // heads)


def _linear(module: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(out, in) weight and bias of a linear layer; GPT-2's Conv1D stores the transpose."""
    from transformers.pytorch_utils import Conv1D

    weight = module.weight.detach()
    bias = None if getattr(module, "bias", None) is None else module.bias.detach()
    return (weight.T if isinstance(module, Conv1D) else weight), bias
