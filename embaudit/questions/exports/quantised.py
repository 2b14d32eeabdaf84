"""What a quantisation does to a checkpoint's own vectors, so that a quantised file is held against that.

The rounding of onnxruntime's dynamic quantisation, in torch: matrices to 8 bits with one scale or one a row, what
enters them to 8 bits with one scale a batch; or matrices to 4 bits in blocks. How far vectors move by it differs by a
factor of hundreds between checkpoints (a few large activations take all of the scale), so no constant could stand for
it. Of all-MiniLM-L6-v2, files of four settings of that quantisation do .75 to .93 times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint.onnx_file import OnnxFile, Precision

if TYPE_CHECKING:
    import torch

BITS: dict[Precision, int] = {"int8": 8, "int4": 4}
# Values of a 4-bit matrix that share a scale.
BLOCK = 32
# Smaller tensors of whole numbers are scales' zero points, shapes and the like; so many values of one are looked at.
SMALLEST, MOST = 1_024, 1 << 20
# What enters a matrix, and what it holds if no matrix of whole numbers is seen.
STATE_STEPS, STEPS = 255, 254


@dataclass(frozen=True)
class Quantisation:
    """How a file rounds.

    Attributes:
        steps: from the lowest to the highest value of a matrix of 8 bits: 255 or 254, 128 or so if a bit is left free
            for processors that overflow; 0 for blocks of 4 bits.
        is_symmetric: whether the lowest value is minus the highest.
        by_row: whether each row of a matrix has a scale of its own.
        states: whether what enters a matrix is rounded, too.
    """

    steps: int
    is_symmetric: bool
    by_row: bool
    states: bool


def rounding_of(file: OnnxFile) -> Quantisation:
    """How a file of precision int8 or int4 rounds, from the whole numbers in it."""
    if file.precision == "int4":
        return Quantisation(0, True, False, file.rounds_states)
    spans: list[int] = []
    is_symmetric = True
    for weight in file.weights:
        if weight.entries >= SMALLEST and (values := file.whole_numbers(weight, MOST)) is not None and len(values):
            low, high = int(values.min()), int(values.max())
            is_symmetric = values.dtype == np.int8
            spans.append(2 * max(-low, high) if is_symmetric else high - low)
    scales = [weight.entries > 1 for weight in file.weights if "scale" in weight.name.lower()]
    by_row = 2 * sum(scales) > len(scales)
    # Tables of words may have a bit more.
    steps = max(int(np.median(spans)), 1) if spans else STEPS
    return Quantisation(steps, is_symmetric, by_row, file.rounds_states)


@contextmanager
def quantised(model: torch.nn.Module, rounding: Quantisation) -> Iterator[None]:
    """The model computes, while this lasts, as with its matrices rounded so; no weight is changed."""
    import torch
    from transformers.pytorch_utils import Conv1D

    def linear(module: Any, args: tuple[Any, ...], out: torch.Tensor) -> torch.Tensor:
        entered = _rounded(args[0], STATE_STEPS) if rounding.states else args[0]
        weight = module.weight if isinstance(module, torch.nn.Linear) else module.weight.T
        return torch.nn.functional.linear(entered, _matrix(weight, rounding), module.bias)

    def embedding(module: Any, args: tuple[Any, ...], out: torch.Tensor) -> torch.Tensor:
        if not rounding.steps:
            return out
        return _rounded(out, rounding.steps, is_symmetric=rounding.is_symmetric, of=module.weight)

    hooks = [
        module.register_forward_hook(embedding if isinstance(module, torch.nn.Embedding) else linear)
        for module in model.modules()
        if isinstance(module, torch.nn.Linear | Conv1D | torch.nn.Embedding)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _matrix(weight: torch.Tensor, rounding: Quantisation) -> torch.Tensor:
    if rounding.steps:
        return _rounded(weight, rounding.steps, is_symmetric=rounding.is_symmetric, by_row=rounding.by_row)
    rows, columns = weight.shape
    blocks = weight.reshape(rows, -1, BLOCK if columns % BLOCK == 0 else columns)
    scale = (blocks.abs().amax(-1, keepdim=True) / 7).clamp(min=1e-30)
    return ((blocks / scale).round() * scale).reshape(rows, columns)


def _rounded(
    values: torch.Tensor,
    steps: int,
    *,
    is_symmetric: bool = False,
    by_row: bool = False,
    of: torch.Tensor | None = None,
) -> torch.Tensor:
    """Rounded to so many steps between the lowest and the highest value (of a whole table, if given); 0 stays 0."""
    of = values if of is None else of
    low, high = (of.amin(1, keepdim=True), of.amax(1, keepdim=True)) if by_row else (of.amin(), of.amax())
    low, high = low.clamp(max=0), high.clamp(min=0)
    spread = 2 * (-low).maximum(high) if is_symmetric else high - low
    scale = (spread / steps).clamp(min=1e-30)
    return (values / scale).round() * scale
