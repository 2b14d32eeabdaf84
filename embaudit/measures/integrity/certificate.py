"""The load certificate: every tensor of the loaded model is traced to a tensor of a file, and compared with it.

transformers only warns about tensors that it does not find, and says nothing if a model's own code initialises them
again after loading. So every value in memory is compared here with the file, after the cast to the loaded dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.files import is_pickle, weight_files
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.checkpoint.streamed import computes_in, is_in_files, was_read
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.measures.integrity import Status

if TYPE_CHECKING:
    import torch

# Values are compared this many at a time, so that a large tensor is never in memory twice.
CHUNK = 1 << 24


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """Where one tensor comes from.

    Attributes:
        name: in the loaded model, ``after_pooling.0.linear.weight`` for modules; empty if nothing reads it.
        file: relative to the checkpoint's folder; empty if no file has it.
        stored_name, stored_dtype: in that file; several names are joined with ``+``.
        shape: in the model, or in the file if nothing reads it.
    """

    name: str
    file: str
    stored_name: str
    stored_dtype: str
    shape: tuple[int, ...]
    status: Status


@dataclass(frozen=True)
class FileTensor:
    """One tensor of a file; ``read`` gives so many of its rows from one on, or all of it if it has no dimensions."""

    file: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[int, int], torch.Tensor]


def trace(checkpoint: Checkpoint) -> list[TensorRecord]:
    """One record per tensor in memory, then one per tensor that nothing reads, of the model and the modules after it.

    Raises:
        CheckpointError: if a weight file can no longer be read.
    """
    folder = checkpoint.resolved.folder
    transformer = folder / checkpoint.recipe.transformer_path
    sources = sources_of(weight_files(transformer))
    records = _trace_part(dict(persistent(checkpoint.model)), sources, _renamer(checkpoint.model), folder)
    if is_in_files(checkpoint.model):
        # Cast in every pass: whether they are in memory between two is no property of the checkpoint.
        wide = _dtype(computes_in(checkpoint.model))
        records = [
            replace(record, status="cast")
            if record.status == "same" and "F" in record.stored_dtype and record.stored_dtype != wide
            else record
            for record in records
        ]
    # Dropout has no step in the loaded pipeline.
    steps = [module for module in checkpoint.recipe.modules if module.kind != "Dropout"]
    for number, module in enumerate(steps):
        loaded = dict(persistent(checkpoint.after_pooling[number]))  # type: ignore[index]
        sources = sources_of(weight_files(folder / module.path)) if loaded else {}
        for record in _trace_part(loaded, sources, lambda name: (name, False), folder):
            named = f"after_pooling.{number}.{record.name}" if record.name else ""
            records.append(replace(record, name=named))
    return records


def in_memory(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """The loaded tensors under the names of ``trace``."""
    after = {f"after_pooling.{name}": tensor for name, tensor in persistent(checkpoint.after_pooling)}
    return dict(persistent(checkpoint.model)) | after


def _trace_part(
    loaded: Mapping[str, torch.Tensor], sources: Mapping[str, FileTensor], renamer: Any, folder: Path
) -> list[TensorRecord]:
    """Records of one module with its files."""
    traced: dict[str, TensorRecord] = {}
    converted, unread = [], []
    known = set(loaded)
    for source in sources.values():
        target, is_converted = renamer(source.name)
        if is_converted:
            converted.append(source)
        elif target in known:
            traced[target] = _compared(target, loaded[target], source, folder)
        else:
            unread.append(source)
    memory = {_memory(loaded[name]): record for name, record in traced.items() if record.status != "changed"}
    for name, tensor in loaded.items():
        owner = memory.get(_memory(tensor))
        if owner is not None and owner.name != name:
            traced[name] = TensorRecord(
                name, owner.file, owner.stored_name, owner.stored_dtype, tuple(tensor.shape), "tied"
            )
        elif name not in traced:
            traced[name] = _untraced(name, tensor, converted, folder)
    return [
        *(traced[name] for name in loaded),
        *(
            TensorRecord("", _relative(source.file, folder), source.name, source.dtype, source.shape, "unread")
            for source in unread
        ),
    ]


def _untraced(name: str, tensor: torch.Tensor, converted: Sequence[FileTensor], folder: Path) -> TensorRecord:
    """A tensor under no name of the file: made of several of its tensors, innocent, or missing."""
    shape = tuple(tensor.shape)
    if name.startswith(UNUSED_WEIGHTS):
        return TensorRecord(name, "", "", "", shape, "unused")
    if converted:
        # Loading refuses tensors that transformers finds nowhere, so these are what the converted ones became.
        first = converted[0]
        return TensorRecord(name, _relative(first.file, folder), "", first.dtype, shape, "converted")
    return TensorRecord(name, "", "", "", shape, "missing")


def _compared(name: str, tensor: torch.Tensor, source: FileTensor, folder: Path) -> TensorRecord:
    status: Status
    if not _holds(tensor, source):
        status = "changed"
    elif name != source.name:
        status = "renamed"
    else:
        status = "same" if source.dtype == _dtype(tensor.dtype) else "cast"
    return TensorRecord(name, _relative(source.file, folder), source.name, source.dtype, tuple(tensor.shape), status)


def _holds(tensor: torch.Tensor, source: FileTensor) -> bool:
    import torch

    if tuple(tensor.shape) != source.shape:
        return False
    rows = source.shape[0] if source.shape else 1
    step = max(1, CHUNK // max(1, tensor.numel() // max(rows, 1)))
    for start in range(0, rows, step):
        ours = (tensor[start : start + step] if source.shape else tensor).detach().cpu()
        if not torch.equal(ours, source.read(start, step).to(ours.dtype)):
            return False
        was_read()
    return True


def persistent(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and saved buffers; tables that code computes (position ids, rotary frequencies) are in no file."""
    for name, value in module.state_dict(keep_vars=True).items():
        if hasattr(value, "numel") and value.numel():
            yield name, value


def sources_of(files: Sequence[Path]) -> dict[str, FileTensor]:
    found: dict[str, FileTensor] = {}
    for file in files:
        if is_pickle(file):
            found |= _pickled(file)
        else:
            for stored in stored_tensors([file]).values():
                found[stored.name] = FileTensor(file, stored.name, stored.dtype, stored.shape, stored.read)
    return found


def _pickled(file: Path) -> dict[str, FileTensor]:
    import torch

    def rows(tensor: torch.Tensor) -> Callable[[int, int], torch.Tensor]:
        return lambda first, count: tensor[first : first + count] if tensor.dim() else tensor

    content = torch.load(file, weights_only=True, map_location="cpu", mmap=_is_zip(file))
    return {
        name: FileTensor(file, name, _dtype(tensor.dtype), tuple(tensor.shape), rows(tensor))
        for name, tensor in content.items()
    }


def _renamer(model: Any) -> Any:
    """transformers' own name in the model for a name in the file, and whether the tensor is merged or split."""
    try:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
    except ImportError:
        return _renamer_of_transformers_4(model)

    transforms = get_model_conversion_mapping(model)
    renamings = [transform for transform in transforms if isinstance(transform, WeightRenaming)]
    converters = [transform for transform in transforms if isinstance(transform, WeightConverter)]
    names = model.state_dict()

    def rename(name: str) -> tuple[str, bool]:
        target, pattern = rename_source_key(name, renamings, converters, model.base_model_prefix, names)
        if target not in names and name in names:
            target, pattern = rename_source_key(name, [], [], model.base_model_prefix, names)
        return target, pattern is not None and target in names

    return rename


def _renamer_of_transformers_4(model: Any) -> Any:
    """Which merges and splits nothing, and takes names with or without the front of a model in a larger one."""
    names, front = model.state_dict(), f"{model.base_model_prefix}."

    def rename(name: str) -> tuple[str, bool]:
        target, _ = model._fix_state_dict_key_on_load(name)
        ways = (target, target.removeprefix(front), front + target)
        return next((way for way in ways if way in names), target), False

    return rename


def _memory(tensor: torch.Tensor) -> tuple[int, tuple[int, ...]]:
    return tensor.data_ptr(), tuple(tensor.shape)


def _dtype(dtype: torch.dtype) -> str:
    """In safetensors' notation, F32."""
    name = str(dtype).removeprefix("torch.")
    return {"bfloat16": "BF16", "bool": "BOOL"}.get(name, name[0].upper() + name.lstrip("abcdefghijklmnopqrstuvwxyz"))


def _is_zip(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(2) == b"PK"


def _relative(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.name
