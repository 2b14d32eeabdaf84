"""With how many digits vectors are stored, from their numbers alone."""

from __future__ import annotations

import numpy as np

ROWS = 2_000
LEVELS = 256
# Numbers of any precision have no more values than there are numbers.
FEWEST_FOR_LEVELS = 4 * LEVELS
# Values of a dimension repeat by chance in few rows.
FEWEST_FOR_DIMENSIONS = 1_000
# How far from a whole number a multiple of a grid's step may be, and of what share of the numbers.
ON_GRID, OF_NUMBERS = 0.01, 0.999


def precision_of(vectors: np.ndarray) -> str:
    """What a sample's (n, D) numbers could be written in: as the end of "numbers are …".

    The coarsest that holds: bits, whole numbers, the 256 levels of int8 (for all numbers, for each dimension, for each
    row by its largest), bfloat16, float16, float32, float64.
    """
    rows = vectors[:ROWS]
    values = np.unique(rows[:200])
    if vectors.dtype.kind in "iu" or bool((rows == np.round(rows)).all()):
        if len(values) <= 2:
            return "bits (binary)"
        inside = values.min() >= -128 and values.max() <= 255
        return "whole numbers of one byte (int8 or packed bits)" if inside else "whole numbers"
    exact = rows.astype(np.float32)
    if exact.size >= FEWEST_FOR_LEVELS and len(np.unique(exact)) <= LEVELS:
        return f"on {LEVELS} levels or fewer (int8 before)"
    if exact.shape[1] > 1 and _is_on_row_grid(exact):
        return "on the levels of int8, scaled by each row's largest"
    if len(rows) >= FEWEST_FOR_DIMENSIONS and all(len(np.unique(column)) <= LEVELS for column in exact.T):
        return "on 256 levels or fewer for each dimension (int8 before)"
    bits = exact.view(np.uint32)
    if not (bits & 0xFFFF).any():
        return "bfloat16's"
    with np.errstate(over="ignore"):
        if (exact.astype(np.float16).astype(np.float32) == exact).all():
            return "float16's"
    return "float64's" if vectors.dtype == np.float64 and (exact != rows).any() else "float32's"


def _is_on_row_grid(rows: np.ndarray) -> bool:
    """Whether each row is its largest number times k/127 for whole k."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    steps = rows.astype(np.float64) / np.where(largest > 0, largest, 1) * 127
    return bool((np.abs(steps - np.round(steps)) <= ON_GRID).mean() >= OF_NUMBERS)
