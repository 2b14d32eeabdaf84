"""Whether the weights fit into memory, asked before they are loaded: the system kills a program without a word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path

from embaudit.checkpoint.files import is_pickle
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.system.processors import ROOT, control_groups
from embaudit.words.errors import CheckpointError, TooLittleMemory

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
