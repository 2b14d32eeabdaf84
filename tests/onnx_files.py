"""Real ONNX files, written by torch's exporter from checkpoints that tests build."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.pooling import pool

IDS, MASK, SEGMENTS, POSITIONS = "input_ids", "attention_mask", "token_type_ids", "position_ids"
# What is computed of the states (B, n, d) and the mask (B, n).
Output = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def states(X: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return X


def pooled(checkpoint: Checkpoint, mode: str = "mean", *, is_normalised: bool = True) -> Output:
    def vectors(X: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = X[:, 0] if mode == "cls" else pool(X, mask, (mode,))
        return torch.nn.functional.normalize(found, dim=-1) if is_normalised else found

    return vectors


def write_onnx(
    checkpoint: Checkpoint,
    path: Path,
    outputs: Mapping[str, Output] | None = None,
    *,
    inputs: Sequence[str] = (IDS, MASK, SEGMENTS),
    size: tuple[int | None, int | None] = (None, None),
    attends_to_padding: bool = False,
    model: Any = None,
) -> Path:
    """Export a checkpoint's transformer.

    Args:
        outputs: by name; by default, the states as last_hidden_state.
        size: batch and length, if they are fixed.
        model: in place of the checkpoint's.
    """
    outputs = outputs or {"last_hidden_state": states}
    transformer = model or checkpoint.model

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = transformer

        def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            named = dict(zip(inputs, given, strict=True))
            mask = torch.ones_like(named[MASK]) if attends_to_padding else named[MASK]
            X = self.model(**named | {MASK: mask}).last_hidden_state
            return tuple(make(X, mask) for make in outputs.values())

    batch, length = size
    ids = torch.full((batch or 2, length or 9), 7)
    places = torch.arange(ids.shape[1]).expand(ids.shape)
    arguments = {IDS: ids, MASK: torch.ones_like(ids), SEGMENTS: torch.zeros_like(ids), POSITIONS: places}
    free = {axis: name for axis, name in enumerate(("batch", "length")) if size[axis] is None}
    axes = dict.fromkeys((*inputs, *(name for name, make in outputs.items() if make is states)), free)
    axes |= {name: {0: "batch"} for name, make in outputs.items() if make is not states and batch is None}
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Exported().eval(),
            tuple(arguments[name] for name in inputs),
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    return path


def quantised_onnx(source: Path, target: Path, **how: Any) -> Path:
    """The file with its matrices in 8 bits, by onnxruntime."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(source), str(target), weight_type=QuantType.QUInt8, **how)
    return target


def half_onnx(source: Path, target: Path) -> Path:
    """The file in half precision, inputs aside, by onnxruntime's converter."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(str(source))), str(target))
    return target


def external_onnx(source: Path, target: Path) -> Path:
    """The file with its weights in one beside it, of the name with ``_data``."""
    import onnx

    onnx.save(
        onnx.load(str(source)),
        str(target),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=f"{target.name}_data",
        size_threshold=0,
    )
    return target


def changed_onnx(source: Path, target: Path, change: Callable[[Any], None]) -> Path:
    """The file after a change of its protocol buffer, which nothing checks."""
    import onnx

    model = onnx.load(str(source), load_external_data=False)
    change(model)
    target.write_bytes(model.SerializeToString())
    return target
