"""What became of the base's weights: nothing, a part of them, or something that has nothing to do with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Literal

from embaudit.checkpoint import Checkpoint
from embaudit.measures.integrity.lattice import can_tell, look_at
from embaudit.questions.change.rows import RowChange, compare_rows
from embaudit.questions.change.tensors import (
    BlockChange,
    SharedRows,
    TensorChange,
    block_of,
    by_block,
    compare_tensors,
    read_by_vectors,
    table_name,
    unread_changes,
)

if TYPE_CHECKING:
    import torch

# Cosine of a matrix with the base's. Independent matrices of 1 024 entries stay within ±.1 (three deviations), and
# tuning, even with noise of half a matrix's spread, keeps it above .8.
UNRELATED, ALIKE = 0.1, 0.8
# Of a block's matrices, and of the base's numbers that have a counterpart.
MOST = 0.5
# Whether there is a change that a vector can depend on: none, one of the values, or one that cannot be compared.
Extent = Literal["nothing", "something", "incomparable"]


@dataclass(frozen=True)
class WeightChange:
    """All tensors that a vector depends on.

    Attributes:
        table: the name of the input embeddings.
        rows: of the input embeddings; None if they cannot be compared.
        unread: names of tensors of the file that changed and that no vector depends on; only looked for if nothing
            else has changed.
        replaced: blocks of which at least half of the matrices have nothing to do with the base's.
        random: those of them whose matrices are noise.
        places: blocks that hold what another block of the base holds, and that one's name.
    """

    tensors: tuple[TensorChange, ...]
    table: str
    rows: RowChange | None
    unread: tuple[str, ...]
    replaced: tuple[str, ...]
    random: tuple[str, ...]
    places: tuple[tuple[str, str], ...]

    @property
    def blocks(self) -> list[BlockChange]:
        return by_block(list(self.tensors))

    @property
    def compared(self) -> int:
        return sum(tensor.compared for tensor in self.tensors)

    @property
    def comparable(self) -> float:
        """The share of the numbers in layers that have a counterpart, of those of the checkpoint with fewer."""
        inside = [tensor for tensor in self.tensors if tensor.is_in_layer]
        fewest = min(sum(size_of(getattr(tensor, side)) for tensor in inside) for side in ("shape", "before"))
        return sum(tensor.compared for tensor in inside) / fewest if fewest else float(not inside)

    @property
    def extent(self) -> Extent:
        if self.comparable < MOST:
            return "incomparable"
        is_nothing = all(
            tensor.status in ("same", "rounded")
            or (tensor.status == "resized" and size_of(tensor.shape) < size_of(tensor.before))
            for tensor in self.tensors
        )
        return "nothing" if is_nothing else "something"


def compare_weights(tuned: Checkpoint, base: Checkpoint, shared: SharedRows) -> WeightChange:
    """Compare everything that a vector depends on, and if nothing changed, the rest of the files."""
    tensors = tuple(compare_tensors(tuned, base, shared))
    ours = read_by_vectors(tuned)
    found = WeightChange(tensors, table_name(tuned, ours), compare_rows(tuned, base, shared), (), (), (), ())
    if found.extent == "nothing":
        return replace(found, unread=tuple(unread_changes(tuned, base)))
    told = {tensor.name for tensor in tensors if tensor.cosine is not None and can_tell(ours[tensor.name])}
    theirs = read_by_vectors(base)
    replaced, random, places = [], [], []
    for block in found.blocks:
        matrices = [tensor for tensor in block.tensors if tensor.name in told]
        unrelated = [tensor for tensor in matrices if abs(tensor.cosine or 0.0) < UNRELATED]
        if not unrelated or len(unrelated) < MOST * len(matrices):
            continue
        replaced.append(block.name)
        if (place := _place_in_base(block.name, ours, theirs)) is not None:
            places.append((block.name, place))
        elif sum(look_at(ours[tensor.name]).is_noise for tensor in unrelated) >= MOST * len(unrelated):
            random.append(block.name)
    return replace(found, replaced=tuple(replaced), random=tuple(random), places=tuple(places))


def _place_in_base(name: str, ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> str | None:
    """The block of the base that holds what a block of the tuned checkpoint holds; None if there is none."""
    import torch

    inside = [part.removeprefix(f"{name}.") for part in ours if part.startswith(f"{name}.")]
    largest = max(inside, key=lambda part: ours[f"{name}.{part}"].numel())
    values = ours[f"{name}.{largest}"].float().flatten().cpu()
    stack = name.rpartition(".")[0]
    for other in dict.fromkeys(block_of(part) for part in theirs if part.startswith(f"{stack}.")):
        candidate = theirs.get(f"{other}.{largest}")
        if other == name or candidate is None or candidate.numel() != values.numel():
            continue
        if float(torch.cosine_similarity(values, candidate.float().flatten().cpu(), dim=0)) > ALIKE:
            return other
    return None


def size_of(shape: tuple[int, ...] | None) -> int:
    return 0 if shape is None else prod(shape)
