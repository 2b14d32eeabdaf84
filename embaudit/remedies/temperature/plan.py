"""Which rows of which weights a temperature divides, by family (``embaudit.checkpoint.anatomy``).

softmax(QKᵀ/(τ√d)) is the softmax of (Q/τ)Kᵀ/√d, and Q/τ results from W_q/τ and b_q/τ: rotary positions are linear. If a
norm follows W_q, its gain is divided instead. A bias added to the logits is not part of QKᵀ.

Whether scaling yields that for a checkpoint is in docs/families.md, too. τ is given for all, per layer, or per head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard

from embaudit.checkpoint.anatomy import Anatomy
from embaudit.words.errors import MeasureError, NotMeasurable, UsageError

if TYPE_CHECKING:
    import torch
    from torch import nn

Row = tuple[float, ...]


@dataclass(frozen=True)
class Temperatures:
    """Positive numbers by which QKᵀ is divided, in addition to √d.

    Attributes:
        rows: (layers or 1, heads or 1).
        is_by_layer: whether each layer has its own row; otherwise a single row applies to all.
        is_by_head: whether each head has its own column; otherwise a single column applies to all.
    """

    rows: tuple[Row, ...]
    is_by_layer: bool = False
    is_by_head: bool = False

    def __post_init__(self) -> None:
        for tau in self.values:
            if not isfinite(tau) or tau <= 0:
                raise UsageError(
                    f"A temperature divides the logits and must be a number greater than 0; {tau:g} is not.",
                    next_step="Give one between 0.5 and 1; attention is sharper below 1.",
                )

    @classmethod
    def of(cls, tau: Temperatures | float | Iterable[float] | Iterable[Iterable[float]]) -> Temperatures:
        """From a number (all layers), a vector (layers,) or a table (layers, heads).

        Raises:
            UsageError: if it is none of these, or a value is not a finite number greater than 0.
        """
        if isinstance(tau, Temperatures):
            return tau
        if not _is_list(tau):
            return cls(((_number(tau),),))
        entries = list(tau)
        if entries and all(_is_list(entry) for entry in entries):
            rows = tuple(tuple(_number(one) for one in entry) for entry in entries if _is_list(entry))
            if len({len(row) for row in rows}) != 1 or not rows[0]:
                raise UsageError(
                    "Temperatures by layer and head need the same number of heads in every layer, and these differ: "
                    f"{', '.join(str(len(row)) for row in rows)}.",
                    next_step="Give every layer as many as it has heads.",
                )
            return cls(rows, is_by_layer=True, is_by_head=True)
        if not entries:
            raise UsageError("An empty list has no temperature.", next_step="Give one per layer, or one for all.")
        return cls(tuple((_number(one),) for one in entries), is_by_layer=True)

    @classmethod
    def per_head(cls, tau: Sequence[float]) -> Temperatures:
        """One per query head, the same in every layer: (heads,).

        Raises:
            UsageError: as ``of``.
        """
        return cls(cls.of([list(tau)]).rows, is_by_head=True)

    @property
    def values(self) -> Row:
        """All of them, layer by layer."""
        return tuple(tau for row in self.rows for tau in row)

    def table(self, layers: int, heads: int) -> tuple[Row, ...]:
        """τ of every layer and head: (layers, heads).

        Raises:
            UsageError: if the checkpoint has a different number of layers or heads.
        """
        if self.is_by_layer and len(self.rows) != layers:
            raise _wrong_length(len(self.rows), "layer", layers)
        if self.is_by_head and len(self.rows[0]) != heads:
            raise _wrong_length(len(self.rows[0]), "head", heads)
        rows = self.rows if self.is_by_layer else self.rows * layers
        return rows if self.is_by_head else tuple(row * heads for row in rows)

    def __str__(self) -> str:
        rows = [", ".join(map(_shortest, row)) for row in self.rows]
        rows = [f"[{row}]" for row in rows] if self.is_by_head else rows
        return f"{', '.join(rows)} (layer by layer)" if self.is_by_layer else rows[0]


def _shortest(tau: float) -> str:
    """All digits, which are needed to undo the scaling."""
    return repr(tau).removesuffix(".0")


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    # Zero-dimensional arrays and tensors have __iter__ but cannot be iterated over.
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | dict) and getattr(value, "ndim", 1) > 0


def _number(value: object) -> float:
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"'{value}' is not a temperature.",
            next_step="Give a number greater than 0, one per layer, or a table of layers and heads.",
        ) from error


def _wrong_length(given: int, what: str, needed: int) -> UsageError:
    return UsageError(
        f"There are temperatures for {given} {what}s, but the checkpoint has {needed}.",
        next_step=f"Give {needed}, or one for all.",
    )


class Support(NamedTuple):
    """Whether a family supports TempScale, and why.

    ``exact``: the formula holds. ``option``: it holds, and the published code's variant, which also divides the
    position bias, is available. ``unsupported``: no scaling of weights achieves it.
    """

    kind: Literal["exact", "option", "unsupported"]
    reason: str


def support_of(anatomy: Anatomy) -> Support:
    """How this model supports temperature scaling."""
    family = anatomy.family
    config = anatomy.model.config.get_text_config()
    if family.softcaps and getattr(config, "attn_logit_softcapping", None) is not None:
        return Support(
            "unsupported",
            f"{family.name} soft-caps its scaled logits with a tanh (attn_logit_softcapping = "
            f"{config.attn_logit_softcapping:g}), and τ would have to divide the result.",
        )
    limits = []
    if family.query_norm is not None:
        limits.append("heads share the gain of the query norm: no τ per head")
    if anatomy.shares_layers:
        limits.append("layers share their weights: no τ per layer")
    how = "W_q and b_q are divided by τ" if family.query_norm is None else "the gain of the query norm is divided by τ"
    if family.position_bias is None and family.shared_position_bias is None:
        return Support("exact", "; ".join([how, *limits]))
    if family.shared_position_bias is not None:
        limits.append("layers share the bias table: no τ per layer if it is divided")
    bias = "the position bias is left unchanged unless requested otherwise"
    return Support("option", "; ".join([how, bias, *limits]))


@dataclass(frozen=True)
class Scaling:
    """One parameter, with the divisors of some of its rows.

    Attributes:
        name: name of the parameter in the model.
        layers: the layers that use it.
        rows: (R,) int64.
        divisors: (R,) float64, a τ for each of the rows.
        is_transposed: whether the rows are the parameter's columns (GPT-2's matrices, tables of position biases).
        offset: added to the parameter before the model uses it; the sum is divided.
    """

    name: str
    parameter: nn.Parameter
    layers: tuple[int, ...]
    rows: torch.Tensor = field(compare=False)
    divisors: torch.Tensor = field(compare=False)
    is_transposed: bool = False
    offset: float = 0.0

    def rows_of(self, like: torch.Tensor) -> torch.Tensor:
        """A copy of the rows in a tensor of the parameter's shape."""
        seen = like.T if self.is_transposed else like
        return seen[self.rows.to(like.device)]

    def write_rows(self, like: torch.Tensor, values: torch.Tensor) -> None:
        """Overwrite the rows in a tensor of the parameter's shape."""
        seen = like.T if self.is_transposed else like
        seen[self.rows.to(like.device)] = values.to(like.device)

    def divided(self, like: torch.Tensor) -> torch.Tensor:
        """The rows, divided in float64 and rounded once to their own dtype.

        Raises:
            MeasureError: if a value overflows the dtype.
        """
        import torch

        # Apple's GPUs have no float64.
        rows = self.rows_of(like.cpu() if like.device.type == "mps" else like)
        divisors = self.divisors.to(rows.device).view(-1, *[1] * (rows.dim() - 1))
        scaled = ((rows.to(torch.float64) + self.offset) / divisors - self.offset).to(like.dtype)
        if not torch.isfinite(scaled).all():
            raise MeasureError(
                f"{self.name} divided by {float(self.divisors.min()):g} does not fit into {like.dtype}.",
                kept="The weights are unchanged.",
                next_step="Choose a larger τ; the paper uses 0.5 to 1.",
            )
        return scaled


def plan_scalings(
    anatomy: Anatomy, temperatures: Temperatures, *, divide_position_bias: bool = False
) -> tuple[Scaling, ...]:
    """The divisions to make: none for τ = 1, and only one for a parameter that layers share.

    Args:
        anatomy: the model.
        temperatures: τ.
        divide_position_bias: divide a position bias, too, as the published code does for T5.

    Raises:
        NotMeasurable: if the family does not support it.
        UsageError: if the temperatures do not match the checkpoint.
    """
    support = support_of(anatomy)
    if support.kind == "unsupported":
        raise NotMeasurable(
            f"{type(anatomy.model).__name__} does not support a temperature: {support.reason}",
            kept="Its length curve and all other measures are unaffected.",
            next_step="Leave the temperatures out for this checkpoint.",
        )
    table = temperatures.table(len(anatomy.layers), anatomy.heads)
    found = _merge_shared(_queries(anatomy, table), "Give one temperature for all layers.")
    _require_all_layers(anatomy, found)
    if divide_position_bias:
        hint = "Give one temperature for all layers, or leave the position bias undivided."
        found += _merge_shared(_position_biases(anatomy, table), hint)
    return tuple(one for one in found if bool((one.divisors != 1).any()))


def _require_all_layers(anatomy: Anatomy, scalings: Iterable[Scaling]) -> None:
    """Check that every layer's queries are divided, with one weight per distinct layer.

    Raises:
        MeasureError: if they are not.
    """
    weights = [one for one in scalings if one.name.endswith("weight")]
    layers = {layer for one in weights for layer in one.layers}
    distinct = len({id(layer) for layer in anatomy.layers})
    if len(layers) != len(anatomy.layers) or len({id(one.parameter) for one in weights}) != distinct:
        raise MeasureError(
            f"{type(anatomy.model).__name__} ({anatomy.family.name}) has {len(anatomy.layers)} layers, but queries "
            f"were found in {len(layers)}.",
            kept="The weights are unchanged.",
            next_step="Report this with the versions that `embaudit doctor` prints.",
        )


def _queries(anatomy: Anatomy, table: tuple[Row, ...]) -> Iterator[Scaling]:
    from transformers.pytorch_utils import Conv1D

    family, names = anatomy.family, _names(anatomy)
    for layer, taus in enumerate(table):
        if family.query_norm is None:
            module: Any = anatomy.part_of(layer, family.query.path)
            rows, divisors = anatomy.rows("query"), _repeated(taus, anatomy.head_size)
        else:
            module = anatomy.part_of(layer, family.query_norm)
            rows, divisors = _shared_gain(anatomy, taus, len(module.weight))
        for parameter in (module.weight, getattr(module, "bias", None)):
            if parameter is not None:
                yield Scaling(
                    names[id(parameter)],
                    parameter,
                    (layer,),
                    rows,
                    divisors,
                    is_transposed=isinstance(module, Conv1D) and parameter.dim() == 2,
                    offset=family.query_norm_offset if parameter is module.weight else 0.0,
                )


def _shared_gain(anatomy: Anatomy, taus: Row, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    if len(set(taus)) > 1:
        raise UsageError(
            f"{type(anatomy.model).__name__} norms the queries of all heads with the same gain "
            f"({anatomy.family.query_norm}): temperatures per head are not possible.",
            next_step="Give one per layer, or one for all.",
        )
    return torch.arange(size), torch.full((size,), taus[0], dtype=torch.float64)


def _position_biases(anatomy: Anatomy, table: tuple[Row, ...]) -> Iterator[Scaling]:
    import torch

    family, names = anatomy.family, _names(anatomy)
    for layer, taus in enumerate(table):
        if family.shared_position_bias is not None:
            weight: Any = anatomy.model.get_submodule(family.shared_position_bias).weight
        elif family.position_bias is not None:
            weight = anatomy.part_of(layer, family.position_bias).weight
        else:
            return
        heads = torch.arange(anatomy.heads)
        yield Scaling(names[id(weight)], weight, (layer,), heads, _repeated(taus, 1), is_transposed=True)


def _merge_shared(scalings: Iterable[Scaling], hint: str) -> list[Scaling]:
    """Merge the divisions of parameters that layers share; ``hint`` is the next step if their divisors differ.

    Raises:
        UsageError: if they differ.
    """
    import torch

    found: dict[int, Scaling] = {}
    for one in scalings:
        before = found.setdefault(id(one.parameter), one)
        if not torch.equal(before.divisors, one.divisors):
            raise UsageError(
                f"Layers {before.layers[0]} and {one.layers[0]} share {one.name}: they cannot have different "
                "temperatures.",
                next_step=hint,
            )
        if before is not one:
            found[id(one.parameter)] = replace(before, layers=(*before.layers, *one.layers))
    return list(found.values())


def _repeated(taus: Row, times: int) -> torch.Tensor:
    import torch

    return torch.tensor(taus, dtype=torch.float64).repeat_interleave(times)


def _names(anatomy: Anatomy) -> dict[int, str]:
    return {id(parameter): name for name, parameter in anatomy.model.named_parameters()}
