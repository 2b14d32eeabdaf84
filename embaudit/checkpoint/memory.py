"""Batches that are too large for the memory: tried again in halves, down to a single text.

Whether the weights fit into memory, asked before they are loaded: the system kills a program without a word.

How large a network is, in what a token costs: time by the parameters it is multiplied with, memory by width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from embaudit.checkpoint.files import is_pickle
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.system.processors import ROOT, control_groups
from embaudit.words.errors import CheckpointError, MeasureError, TooLittleMemory, is_out_of_memory, one_line

if TYPE_CHECKING:
    import torch


Result = TypeVar("Result")


def in_halves(
    run: Callable[[torch.Tensor, torch.Tensor], Result],
    ids: torch.Tensor,
    mask: torch.Tensor,
    lower: Callable[[int], None],
) -> Iterator[tuple[slice, Result]]:
    """``run(ids, mask)`` and its rows; if that takes more memory than there is, each half of the rows, and so on.

    How much fits is not known beforehand: other programs share a GPU, and models differ in what they keep.

    Args:
        run: a forward pass; what it returns should not stay on the device, where the other half is still to run.
        ids, mask: (B, n).
        lower: told how many tokens fit at most, so that later batches are not too large first.

    Raises:
        MeasureError: if a single text is too large.
    """
    import torch

    waiting = [slice(0, len(ids))]
    while waiting:
        rows = waiting.pop()
        try:
            result = run(ids[rows], mask[rows])
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if rows.stop - rows.start == 1:
                raise MeasureError(
                    f"The memory of {ids.device} is not enough for one text of {ids.shape[1]:,} tokens: "
                    f"{one_line(error)}",
                    kept="Every finished step is staged.",
                    next_step="Free some, or lower --max-length, or choose another --dtype or --device, and run the "
                    "same command again: it continues where it stopped.",
                ) from error
        else:
            yield rows, result
            continue
        # Not in the handler: the error's frames hold what the failed pass had computed.
        if ids.is_cuda:
            torch.cuda.empty_cache()
        middle = (rows.start + rows.stop) // 2
        lower((middle - rows.start) * ids.shape[1])
        waiting += [slice(middle, rows.stop), slice(rows.start, middle)]


BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# What a forward pass and the checks take beside the weights, at most; and as a part of them, for small ones.
WORK, WORK_SHARE = 1_000_000_000, 0.5


def require_room(folder: Path, weights: int, what: str) -> None:
    """Refuse what does not fit into the memory that this process may still have.

    Args:
        folder: of the weights.
        weights: bytes of those that are in memory together.
        what: these are, such as ``in float32``.

    Raises:
        TooLittleMemory: if they do not fit; not where the system does not say how much there is.
    """
    if fits(weights):
        return
    raise TooLittleMemory(
        f"The weights in {folder} need about {_size(_needed(weights))} of memory ({_size(weights)} {what}, and the "
        f"rest to compute with them), but only {_size(free_memory() or 0)} can be had here.",
        kept="Nothing was computed.",
        next_step="Free some, raise the container's limit, or look at the files alone, which takes 1 GB: "
        "embaudit check CHECKPOINT --files",
    )


def fits(weights: int) -> bool:
    """Whether so many bytes of weights can be had, with what it takes to compute with them; so if nobody says."""
    there = free_memory()
    return there is None or _needed(weights) <= there


def _needed(weights: int) -> float:
    return weights + min(WORK, WORK_SHARE * weights)


def _size(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def bytes_in_memory(files: list[Path], dtype: str) -> int:
    """What weights take in this precision; of pickles, which are not opened for it, what they take in their files."""
    total = sum(path.stat().st_size for path in files if is_pickle(path))
    try:
        stored = stored_tensors([path for path in files if not is_pickle(path)])
    except CheckpointError:  # whoever loads it says so
        return total
    return total + sum(
        prod(tensor.shape) * BYTES[dtype] if "F" in tensor.dtype else tensor.size for tensor in stored.values()
    )


def free_memory(root: Path | None = None) -> int | None:
    """Bytes that this process may still have: free in the system and in each control group; None if nobody says.

    Args:
        root: where ``/proc`` and ``/sys`` are.
    """
    root = root or ROOT
    found = [*_of_system(root), *(left for group in control_groups(root, "memory") for left in _of_group(group))]
    return max(0, min(found)) if found else None


def _of_system(root: Path) -> Iterator[int]:
    with suppress(OSError, ValueError, KeyError):
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        known = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if rest}
        yield known["MemAvailable"] + known.get("SwapFree", 0)


def _of_group(group: Path) -> Iterator[int]:
    """What is left of its limit, in either version of control groups; pages of files are given up when needed."""
    for limit, used, pages in (
        ("memory.max", "memory.current", ("inactive_file", "active_file")),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
    ):
        with suppress(OSError, ValueError):
            most = int((group / limit).read_text(encoding="ascii"))
            held = int((group / used).read_text(encoding="ascii"))
            stat = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
            swap = 0
            with suppress(OSError, ValueError):
                swap = int((group / "memory.swap.max").read_text(encoding="ascii"))
            yield most - held + sum(int(stat.get(name, 0)) for name in pages) + swap


# What the widest state of a batch on a CPU may take. Batches of 2 048 tokens are within it up to a width of 3 072 (BERT
# base); a batch of a wider network is as fast with fewer tokens, since each takes more operations.
WIDEST_STATE = 2_048 * 3_072 * 4


def multiplied(model: torch.nn.Module) -> int:
    """Parameters that each token is multiplied with: all matrices but tables of embeddings.

    Of experts, all are counted, though a token meets a few of them.
    """
    return sum(matrix.numel() for matrix in _matrices(model))


def tokens_within(model: torch.nn.Module, most: int) -> int:
    """How many tokens a batch may have, so that its widest state is no larger than usual."""
    widest = max((max(matrix.shape[-2:]) for matrix in _matrices(model)), default=1)
    return max(1, min(most, WIDEST_STATE // (4 * widest)))


def _matrices(model: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """Each one once, whatever shares it."""
    import torch

    tables = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, torch.nn.Embedding)
        for parameter in module.parameters(recurse=False)
    }
    return (one for one in model.parameters() if one.dim() > 1 and id(one) not in tables)
