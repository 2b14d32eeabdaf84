"""Two checkpoints tensor by tensor, after loading: which moved, and by how much.

For a tensor W of the base and W' of the tuned checkpoint, both in float32,

    relative change   ‖W' − W‖ / ‖W‖
    moved             entries with w' ≠ w
    cosine            ⟨W', W⟩ / (‖W'‖ ‖W‖): near 0 for matrices that have nothing to do with each other

If W' holds nothing but numbers of a shorter format (bfloat16, float16), W is rounded to it first: saving in it is no
training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Literal

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.files import weight_files
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.checkpoint.streamed import was_read
from embaudit.measures.integrity.certificate import CHUNK, FileTensor, persistent, sources_of, trace

if TYPE_CHECKING:
    import torch

# Shorter formats in which a tensor may have been saved, the coarser first.
FORMATS = ("bfloat16", "float16")
# Entries that are looked at before a whole tensor is: enough to tell that it is not of a shorter format.
PROBED = 4_096
# Tables that code computes, which some releases of transformers save and others do not.
COMPUTED = re.compile(r"(inv_freq|masked_bias|attn\.bias|position_ids|relative_position_index)$")
# same: every entry is equal. rounded: equal once the base is rounded to the shorter format. moved: not equal.
# resized: a table of embeddings with more or fewer rows, those of both unmoved. reshaped: of another shape.
# added, removed: only in one of the two.
Status = Literal["same", "rounded", "moved", "resized", "reshaped", "added", "removed"]


@dataclass(frozen=True)
class SharedRows:
    """Which rows of the two tables of input embeddings belong together: (k,) int64 ids; None for the same places."""

    tuned: torch.Tensor | None = None
    base: torch.Tensor | None = None


@dataclass(frozen=True)
class TensorChange:
    """One tensor of both checkpoints, or of one.

    Attributes:
        name: in the loaded models; ``after_pooling.0.linear.weight`` for the modules after pooling.
        shape, before: in the tuned checkpoint and in the base; None if it has no such tensor.
        compared, moved: entries.
        rounded_to: the shorter format that the base was rounded to; empty if it was not.
        delta, norm, own_norm: ‖W' − W‖, ‖W‖ and ‖W'‖ over the compared entries.
        cosine: None if one of the two is all zero.
    """

    name: str
    shape: tuple[int, ...] | None
    before: tuple[int, ...] | None
    compared: int = 0
    moved: int = 0
    rounded_to: str = ""
    delta: float = 0.0
    norm: float = 0.0
    own_norm: float = 0.0
    cosine: float | None = None

    @property
    def block(self) -> str:
        """The layer that it belongs to (``encoder.layer.3``), or the part outside of layers (``embeddings``)."""
        return block_of(self.name)

    @property
    def is_in_layer(self) -> bool:
        """Whether it is in a numbered part of the transformer itself."""
        return self.block != self.name.split(".")[0] and not self.name.startswith("after_pooling.")

    @property
    def is_matrix(self) -> bool:
        return len(self.shape or self.before or ()) > 1

    @property
    def status(self) -> Status:
        if self.shape is None:
            return "removed"
        if self.before is None:
            return "added"
        if not self.compared:
            return "reshaped"
        if self.moved:
            return "moved"
        if self.shape != self.before:
            return "resized"
        return "rounded" if self.rounded_to else "same"

    @property
    def relative(self) -> float | None:
        """‖W' − W‖ / ‖W‖; None if nothing was compared or W is all zero."""
        return self.delta / self.norm if self.norm > 0 else None


@dataclass(frozen=True)
class BlockChange:
    """All tensors of one block.

    Attributes:
        tensors: in the order of the model.
    """

    name: str
    tensors: list[TensorChange] = field(default_factory=list)

    @property
    def compared(self) -> int:
        return sum(tensor.compared for tensor in self.tensors)

    @property
    def moved(self) -> int:
        return sum(tensor.moved for tensor in self.tensors)

    @property
    def relative(self) -> float | None:
        """‖Δ‖ / ‖W‖ over all of its tensors together."""
        return relative(self.tensors)

    @property
    def is_unchanged(self) -> bool:
        return all(tensor.status in ("same", "rounded") for tensor in self.tensors)


def relative(tensors: list[TensorChange]) -> float | None:
    """√Σ‖Δ‖² / √Σ‖W‖²; None if there is nothing to compare with."""
    norm = sqrt(sum(tensor.norm**2 for tensor in tensors))
    return sqrt(sum(tensor.delta**2 for tensor in tensors)) / norm if norm > 0 else None


def block_of(name: str) -> str:
    """``encoder.layer.3``; outside of layers the first part of the name."""
    found = re.match(r"(.*?\.\d+)\.", name)
    return found[1] if found else name.split(".")[0]


def by_block(tensors: list[TensorChange]) -> list[BlockChange]:
    """The blocks in the order of the model."""
    blocks: dict[str, BlockChange] = {}
    for tensor in tensors:
        blocks.setdefault(tensor.block, BlockChange(tensor.block)).tensors.append(tensor)
    return list(blocks.values())


def read_by_vectors(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """Every saved tensor that a vector can depend on, by name; one that is tied to another is named once."""
    modules = ((f"after_pooling.{name}", tensor) for name, tensor in persistent(checkpoint.after_pooling))
    found: dict[str, torch.Tensor] = {}
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for name, tensor in (*persistent(checkpoint.model), *modules):
        address = tensor.data_ptr(), tuple(tensor.shape)
        if not _is_unused(name) and address not in seen:
            seen.add(address)
            found[name] = tensor.detach()
    return found


def table_name(checkpoint: Checkpoint, tensors: Mapping[str, torch.Tensor]) -> str:
    """The name of the input embeddings among a checkpoint's tensors; empty if they are none of them."""
    address = checkpoint.model.get_input_embeddings().weight.data_ptr()
    return next((name for name, tensor in tensors.items() if tensor.data_ptr() == address), "")


def compare_tensors(tuned: Checkpoint, base: Checkpoint, shared: SharedRows) -> list[TensorChange]:
    """Every tensor that a vector of either depends on, in the tuned model's order, then those of the base alone.

    Nothing is copied as a whole: this takes no memory beyond the two models, hardly any if they stay in their files.
    """
    import torch

    ours, theirs = read_by_vectors(tuned), read_by_vectors(base)
    table = table_name(tuned, ours)
    tables = {
        f"{name}.weight" for name, module in tuned.model.named_modules() if isinstance(module, torch.nn.Embedding)
    }
    changes = []
    for name, tensor in ours.items():
        was_read()
        shape, before = tuple(tensor.shape), theirs.get(name)
        if before is None:
            changes.append(TensorChange(name, shape, None))
        elif shape == before.shape or (name in tables and shape[1:] == before.shape[1:]):
            rows = shared if name == table else SharedRows()
            changes.append(_compared(name, tensor, before, rows))
        else:
            changes.append(TensorChange(name, shape, tuple(before.shape)))
    return [*changes, *(TensorChange(name, None, tuple(theirs[name].shape)) for name in theirs if name not in ours)]


def _compared(name: str, new: torch.Tensor, old: torch.Tensor, rows: SharedRows) -> TensorChange:
    moved = compared = 0
    delta = norm = own = product = 0.0
    is_rounded = False
    for part, before, raw in parts(new, old, rows):
        compared += part.numel()
        moved += int((part != before).sum())
        is_rounded = is_rounded or not bool((before == raw).all())
        one, two = part.double(), before.double()
        delta += float((one - two).square().sum())
        norm += float(two.square().sum())
        own += float(one.square().sum())
        product += float((one * two).sum())
    cosine = product / sqrt(norm * own) if norm > 0 and own > 0 else None
    rounded_to = shorter_format(new) if is_rounded else ""
    return TensorChange(
        name,
        tuple(new.shape),
        tuple(old.shape),
        compared,
        moved,
        rounded_to,
        sqrt(delta),
        sqrt(norm),
        sqrt(own),
        cosine,
    )


def parts(
    new: torch.Tensor, old: torch.Tensor, rows: SharedRows
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Corresponding pieces of two tensors on the CPU in float32: of the new one, of the old one as the new one would
    hold it after rounding to its format, and of the old one itself.
    """
    import torch

    shorter = shorter_format(new)
    if not new.shape:
        new, old = new[None], old[None]
    count = min(len(new), len(old)) if rows.tuned is None else len(rows.tuned)
    step = max(1, CHUNK // max(1, new[0].numel()))
    for start in range(0, count, step):
        place = slice(start, min(start + step, count))
        ours = new[place if rows.tuned is None else rows.tuned[place].to(new.device)].cpu()
        theirs = old[place if rows.base is None else rows.base[place].to(old.device)].cpu().float()
        rounded = theirs.to(getattr(torch, shorter)).float() if shorter else theirs
        yield ours.float(), rounded, theirs


def shorter_format(tensor: torch.Tensor) -> str:
    """The shorter format that holds every entry of a tensor exactly; empty if none does."""
    import torch

    if not tensor.is_floating_point():
        return ""
    flat = tensor.detach().reshape(-1)
    probe = flat[:: max(1, flat.numel() // PROBED)].float()
    for name in FORMATS:
        dtype = getattr(torch, name)
        if torch.equal(probe, probe.to(dtype).float()) and all(
            torch.equal(part.float(), part.to(dtype).float()) for part in torch.split(flat, CHUNK)
        ):
            return name
    return ""


def unread_changes(tuned: Checkpoint, base: Checkpoint) -> list[str]:
    """Names of tensors in the tuned checkpoint's file that no vector depends on, and that the base lacks or has with
    other values: poolers and heads. Rounding to the format of the file is no other value.
    """
    import torch

    ours, theirs = _unread(tuned), _unread(base)
    changed = []
    for name, source in ours.items():
        values, other = _whole(source), theirs.get(name)
        if not values.is_floating_point() or COMPUTED.search(name):
            continue
        if other is None or other.shape != source.shape or not torch.equal(values, _whole(other).to(values.dtype)):
            changed.append(name)
    return changed


def _whole(source: FileTensor) -> torch.Tensor:
    return source.read(0, source.shape[0] if source.shape else 1)


def _unread(checkpoint: Checkpoint) -> dict[str, FileTensor]:
    transformer = checkpoint.resolved.folder / checkpoint.recipe.transformer_path
    read = {record.stored_name for record in trace(checkpoint) if record.name and not _is_unused(record.name)}
    prefix = f"{checkpoint.model.base_model_prefix}."
    return {
        name.removeprefix(prefix): source
        for name, source in sources_of(weight_files(transformer)).items()
        if name not in read
    }


def _is_unused(name: str) -> bool:
    return name.startswith(UNUSED_WEIGHTS)
