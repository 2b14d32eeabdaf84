"""Were weights rounded to a few bits and saved as floats? Recognised by the lattice that their values lie on.

A quantiser keeps w = s(q + z) for whole numbers q of a few bits, with a step s (and a zero point z, or any offset) for
each group of neighbours. So all values of a group lie on one lattice (``lattice``). A larger group is believed only if
its step is no finer than those of its parts: two lattices have a common finer one. Few distinct values or few distinct
mantissas that are on no lattice are a code book (NF4) or numbers of 8 bits in floating point (FP8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from embaudit.measures.integrity.lattice import FEWEST, Lattice, lattice_of, saving_error

if TYPE_CHECKING:
    import torch

Kind = Literal["symmetric", "asymmetric", "code book", "floating point"]
# Neighbours that share a step; the smallest are part of all others.
GROUPS, SMALLEST = (16, 32, 64, 128, 256), 16
BITS = (2, 3, 4, 5, 6, 8)
# Groups that are looked at, and the share of them that may lie on no lattice.
FIRST, LOOKED_AT, MAY_FAIL = 8, 16, 0.25
# Of a tensor, so many rows, so many of their values, and of all of them together.
ROWS, LONGEST, POOLED = 64, 8_192, 2_048
# What a step costs, in bits: shared by more weights it costs each of them less, which a finer step must not outweigh.
STEP_BITS = 16.0
# Distinct values of a code book of 4 bits; distinct mantissas of FP8, whose e4m3 has 3 digits after the first.
CODES, MANTISSAS = 16, 8
# Units in the last place for each value, below which saving alone leaves few values.
NARROW = 4
# The smallest number that float16 keeps with all digits.
NORMAL = 2.0**-14
# Blocks of neighbours that share a scale, in which both are few.
BLOCKS, MOSTLY = (64, 128, 256, 512, 1024, 2048, 4096), 0.9
# Share of its levels that a lattice uses at least.
USED = 0.7
# Whole numbers that E2M1 (MXFP4, NVFP4) has, in halves: 0, ½, 1, 1½, 2, 3, 4, 6.
E2M1 = {0, 1, 2, 3, 4, 6, 8, 12}
# Distinct values of a row of 8 bits, and the least share of a row that is distinct in floats, bfloat16 included.
EIGHT_BITS, DISTINCT = 256, 0.6
NAMES = {"code book": "by a code book", "floating point": "in floating point"}


@dataclass(frozen=True)
class Rounding:
    """How weights seem to have been rounded.

    Attributes:
        kind: symmetric around 0, asymmetric (with a zero point or an offset), values of a code book (NF4), or numbers
            in floating point of 4 or 8 bits.
        shared: what has one step or scale: "groups of 32", "whole rows" …
    """

    bits: int
    kind: Kind
    shared: str

    def __str__(self) -> str:
        return f"{self.bits} bits in {self.shared} ({NAMES.get(self.kind, self.kind)})"


def rounding_of(tensor: torch.Tensor, half: str) -> Rounding | None:
    """How a tensor (…, m, n) was rounded; None if it was not, or is too small to tell.

    Args:
        half: the precision that all of its values have: "bfloat16", "float16" or "".
    """
    if tensor.dim() < 2:
        return None
    W = tensor.reshape(-1, tensor.shape[-1])
    if min(W.shape) < 2 or max(W.shape) < SMALLEST:
        return None
    rows, columns = _lines(W, "rows"), _lines(W.T, "columns")
    whole = float(W.min()), float(W.max())
    of_rows, of_columns = (_on_lattice(lines, half, whole) for lines in (rows, columns))
    # Of a step for each column, groups of rows have the steps of several: they lie on no lattice, or on a finer one.
    if lattices := [one for one in (of_rows, of_columns) if one is not None]:
        return min(lattices, key=lambda one: one.bits)
    ways = ((find, lines) for find in (_by_code, _by_few_values) for lines in (rows, columns))
    return next((one for find, lines in ways if (one := find(lines, half)) is not None), None)


@dataclass(frozen=True)
class Lines:
    """Rows or columns (r, n) of a tensor, and which of the two."""

    values: np.ndarray
    along: str

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def shared(self, size: int) -> str:
        """What groups of this size are called."""
        if size == self.width:
            return f"whole {self.along}"
        return f"groups of {size}" + (" along columns" if self.along == "columns" else "")

    def pooled(self) -> np.ndarray:
        """Some values of all lines, those that are 0 left out."""
        values = self.values[self.values != 0]
        return values[:: max(1, len(values) // POOLED)]

    def groups(self, size: int, count: int, least: int = FEWEST) -> Iterator[np.ndarray]:
        """Groups of neighbours, each of another line and at another place, with at least so many numbers but 0."""
        places, step = self.width // size, max(1, len(self.values) // count)
        for number, line in enumerate(self.values[::step][:count]):
            start = (number * 5 % places) * size
            group = line[start : start + size]
            # Constants are a finding of their own.
            if np.count_nonzero(group) >= least and len(np.unique(group)) > 1:
                yield group


def _lines(W: torch.Tensor, along: str) -> Lines:
    """At most ``ROWS`` rows, evenly chosen, without those of zeros (padding)."""
    rows: np.ndarray = W[:: max(1, len(W) // ROWS), :LONGEST][:ROWS].float().cpu().numpy()
    return Lines(rows[(rows != 0).any(axis=1)], along)


def _on_lattice(lines: Lines, half: str, ends: tuple[float, float]) -> Rounding | None:
    """By lattices: the largest groups that lie on one."""
    if len(lines.values) < 2 or lines.width < SMALLEST:
        return None
    sizes = [*(size for size in GROUPS if size < lines.width), lines.width]
    # In bfloat16, a lattice of 8 bits between two ends is only recognised in groups that reach both.
    starts = sizes if half == "bfloat16" else [_first_size(lines, sizes)]
    tried = ((small, parts) for small in starts if (parts := _fits(list(lines.groups(small, FIRST)), half)) is not None)
    small, parts = next(tried, (0, None))
    whole = lattice_of(lines.pooled(), half)
    if whole is not None and (parts is None or _is_as_coarse(whole, parts, small)):
        low, high = (min(ends[0], 0.0), max(ends[1], 0.0)) if whole.passes_zero else ends
        return _rounding([whole], "the whole tensor", round((high - low) / whole.step) + 1)
    if parts is None:
        return None
    for size in sizes[::-1]:
        if size == small:
            break
        groups = list(lines.groups(size, LOOKED_AT))
        found = _fits(groups, half)
        if found is not None and _are_as_coarse(groups, small, half):
            return _rounding(found, lines.shared(size))
    found_in_parts = _rounding(parts, lines.shared(small))
    if small < BLOCKS[0] and found_in_parts is not None and 2**found_in_parts.bits > CODES:
        # A part of a larger block may lie on a fine lattice by chance, where all of the block has few values.
        return _by_code(lines, half) or found_in_parts
    return found_in_parts


def _first_size(lines: Lines, sizes: Sequence[int]) -> int:
    """The smallest groups of which most have enough numbers but 0."""
    enough = min(FIRST, len(lines.values)) / 2
    return next((size for size in sizes if len(list(lines.groups(size, FIRST))) >= enough), sizes[-1])


def _fits(groups: Sequence[np.ndarray], half: str) -> list[Lattice] | None:
    """The lattices of the groups; None if too many have none, or there are too few groups."""
    found: list[Lattice] = []
    failed = 0
    for group in groups:
        lattice = lattice_of(group, half)
        found += [lattice] if lattice is not None else []
        failed += lattice is None
        if failed > max(1, MAY_FAIL * len(groups)):
            return None
    return found if len(found) > failed else None


def _are_as_coarse(groups: Sequence[np.ndarray], small: int, half: str) -> bool:
    """Whether steps of groups are about those of their first parts."""
    finer = []
    for group in groups:
        one, part = lattice_of(group, half), _part(group, small, half)
        if one is not None and part is not None:
            finer.append(np.log2(part.step / one.step))
    return bool(finer) and float(np.mean(finer)) <= STEP_BITS / small - STEP_BITS / len(groups[0])


def _part(group: np.ndarray, small: int, half: str) -> Lattice | None:
    parts = (group[start : start + small] for start in range(0, len(group) - small + 1, small))
    return next((found for part in parts if (found := lattice_of(part, half)) is not None), None)


def _is_as_coarse(whole: Lattice, parts: Sequence[Lattice], small: int) -> bool:
    finer = np.mean([np.log2(part.step / whole.step) for part in parts])
    return bool(finer <= STEP_BITS / small)


def _rounding(found: Sequence[Lattice], shared: str, levels: int = 0) -> Rounding | None:
    levels = max(levels, int(np.median([lattice.levels for lattice in found])))
    bits = next((bits for bits in BITS if 2**bits >= levels), None)
    if bits is None:
        return None
    passes_zero = all(lattice.passes_zero for lattice in found)
    places = np.concatenate([lattice.places for lattice in found])
    used = set(np.unique(places).tolist())
    if passes_zero and len(used) <= CODES < USED * (max(used) - min(used)) and len(places) >= 10 * CODES:
        # Of many levels only a few are ever used: E2M1, or a table of whole numbers (IQ4).
        return Rounding(4, "floating point" if {abs(one) for one in used} <= E2M1 else "code book", shared)
    within = [np.abs(lattice.places).max() <= 2 ** max(bits - 1, 0) for lattice in found]
    return Rounding(bits, "symmetric" if passes_zero and np.mean(within) >= MOSTLY else "asymmetric", shared)


def _by_code(lines: Lines, half: str) -> Rounding | None:
    """By few distinct values or mantissas in blocks of neighbours."""
    sizes = [*(size for size in BLOCKS if size < lines.width), lines.width]
    if len(lines.values) < 2 or lines.width < BLOCKS[0]:
        return None
    if size := _largest(lines, half, sizes, lambda block: len(np.unique(block)) <= CODES):
        return Rounding(4, "code book", lines.shared(size))
    if size := _largest(lines, half, sizes, lambda block: _mantissas(block) <= MANTISSAS):
        return Rounding(8, "floating point", lines.shared(size))
    return None


def _by_few_values(lines: Lines, half: str) -> Rounding | None:
    """By rows of at most 256 values; float16 alone leaves more of them, and bfloat16 may not."""
    width = lines.width

    def are_few(row: np.ndarray) -> bool:
        return len(np.unique(row[row != 0])) <= min(EIGHT_BITS, DISTINCT * np.count_nonzero(row))

    if len(lines.values) < 2 or width < 0.75 * EIGHT_BITS or not _mostly(lines, half, width, are_few, EIGHT_BITS):
        return None
    return Rounding(8, "code book", lines.shared(width))


def _mantissas(block: np.ndarray) -> int:
    """Distinct mantissas; smaller numbers lose digits in float16."""
    return len(np.unique(np.frexp(np.abs(block[np.abs(block) >= NORMAL]))[0])) or len(block)


def _largest(lines: Lines, half: str, sizes: Sequence[int], holds: Callable[[np.ndarray], bool]) -> int:
    """The largest blocks of which most hold, where all smaller ones do; 0 if none do."""
    found = 0
    for size in sizes:
        if not _mostly(lines, half, size, holds, CODES):
            break
        found = size
    return found


def _mostly(lines: Lines, half: str, size: int, holds: Callable[[np.ndarray], bool], values: int) -> bool:
    """Whether most blocks hold, of those that saving alone leaves several times as many values."""
    # Of zeros (padding, pruned weights) there are many in one place for other reasons. A few blocks tell most tensors.
    for count in (FIRST, ROWS):
        blocks = [one for one in lines.groups(size, count, least=size // 2) if _units(one, half) >= NARROW * values]
        if not blocks or float(np.mean([holds(block) for block in blocks])) <= MOSTLY:
            return False
    return True


def _units(block: np.ndarray, half: str) -> float:
    """The range of a block's values in units in the last place of the largest."""
    error = float(saving_error(block.astype(np.float64), half).max())
    return float(np.ptp(block)) / (2 * error) if error else 0.0
