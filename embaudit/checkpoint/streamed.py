"""Large networks: weights stay in their files, and each layer's are in memory while it computes.

A file holds bfloat16 or float16, and float32 holds every value of both, so that

    f(x; W_1 … W_L) = f_L(… f_1(x; float32(W_1)) …; float32(W_L))

is what the network gives that is loaded as a whole, to the last bit, with the memory of one layer (of the largest
module outside the layers, if that is larger). Every pass reads the files again: 2 bytes a parameter from the disk, or
from the system's cache of it, beside 2 operations a parameter and token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from embaudit.checkpoint.mapped import Pages

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# Set on a model whose weights stay in their files: what it computes in.
COMPUTES_IN = "embaudit_computes_in"


def stay_in_files(model: PreTrainedModel, dtype: torch.dtype, files: Collection[Path]) -> PreTrainedModel:
    """The model with weights as they are in their files, that computes in a wider precision.

    Args:
        files: that its weights are mapped from.
    """
    pages = Pages(files)
    for unit in units_of(model):
        if unit.is_table:
            # A row is looked up as it is: there may be hundreds of thousands, of which a batch needs some.
            unit.module.register_forward_hook(lambda _module, _given, found: found.to(dtype))
        else:
            _Widened(unit, dtype, pages)
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_floating_point():
                setattr(module, name, buffer.to(dtype))
    setattr(model, COMPUTES_IN, dtype)
    return model


def computes_in(model: torch.nn.Module) -> torch.dtype:
    """The precision of what a model gives."""
    found: Any = getattr(model, COMPUTES_IN, None) or model.dtype
    return cast("torch.dtype", found)


def is_in_files(model: torch.nn.Module) -> bool:
    return hasattr(model, COMPUTES_IN)


@dataclass(frozen=True)
class WeightUnit:
    """A part of a network whose weights are in memory together.

    Attributes:
        is_layer: whether what stands in the module belongs to it; of another module, only its own parameters.
    """

    module: torch.nn.Module
    is_layer: bool

    @property
    def is_table(self) -> bool:
        """A table of embeddings, and no kind of it that computes something."""
        import torch

        return type(self.module) is torch.nn.Embedding

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self.module.parameters(recurse=self.is_layer)

    @property
    def numbers(self) -> int:
        """How many are in memory at once."""
        return 0 if self.is_table else sum(parameter.numel() for parameter in self.parameters())


def units_of(model: torch.nn.Module) -> Iterator[WeightUnit]:
    """The layers of a network, and the modules outside them that have weights of their own.

    A layer is a unit, since many look at their modules' weights before they call these.
    """
    import torch

    within: set[int] = set()
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and id(module) not in within:
            for layer in module:
                within |= {id(inner) for inner in layer.modules()}
                yield WeightUnit(layer, is_layer=True)
    for module in model.modules():
        if id(module) not in within and any(True for _ in module.parameters(recurse=False)):
            yield WeightUnit(module, is_layer=False)


class _Widened:
    """The weights of a unit, widened from its call to its end."""

    def __init__(self, unit: WeightUnit, dtype: torch.dtype, pages: Pages) -> None:
        self.unit, self.dtype, self.pages = unit, dtype, pages
        self.stored: list[tuple[torch.nn.Parameter, torch.Tensor]] = []
        unit.module.register_forward_pre_hook(self._before)
        unit.module.register_forward_hook(self._after, always_call=True)

    def _before(self, module: torch.nn.Module, given: Any) -> None:
        for parameter in self.unit.parameters():
            if parameter.is_floating_point() and parameter.dtype != self.dtype:
                self.stored.append((parameter, parameter.data))
                parameter.data = parameter.data.to(self.dtype)

    def _after(self, module: torch.nn.Module, given: Any, found: Any) -> None:
        for parameter, stored in self.stored:
            parameter.data = stored
        self.stored.clear()
        self.pages.give_back()
