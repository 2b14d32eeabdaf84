"""Vectors at unit length."""

from __future__ import annotations

import numpy as np


def unit_float32(vectors: np.ndarray) -> np.ndarray:
    """(n, D) float32 rows of length 1; a row of zeros stays, one with NaN becomes NaN."""
    rows = np.asarray(vectors, dtype=np.float32)
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return rows / np.where(norms > 0, norms, 1)[:, None]
