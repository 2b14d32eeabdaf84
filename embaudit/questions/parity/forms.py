"""The numbers that vectors are given in: fractions or their bytes, whole numbers (int8), signs, or packed bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

BYTE, SIGNED, FLOAT32 = 8, 128, 4
# What unit vectors are multiplied by before they are rounded, and how far from the best product a scale is looked for.
SCALES = (127.0, 128.0, 255.0, 100.0)
NEARBY, TRIED = 0.01, 41


@dataclass(frozen=True)
class Form:
    """How a vector's numbers are written.

    Attributes:
        said: what is different from fractions, as the end of "it …"; empty if nothing is.
        write: (n, D) fractions in this form, given the other's (n, D) vectors of the same texts for the scale.
        read: the other's rows, with packed bits unpacked.
    """

    said: str
    write: Callable[[np.ndarray, np.ndarray], np.ndarray]
    read: Callable[[np.ndarray], np.ndarray] = lambda rows: rows


FRACTIONS = Form("", lambda vectors, theirs: vectors)
SIGNS = Form(
    "gives signs (binary vectors) in place of numbers", lambda vectors, theirs: np.where(vectors > 0, 1.0, -1.0)
)
BITS = Form("gives bits (binary vectors) in place of numbers", lambda vectors, theirs: (vectors > 0).astype(float))


def forms_of(theirs: Mapping[str, np.ndarray], dimension: int) -> list[Form]:
    """The forms that the other's vectors by kind may have, the likeliest first.

    Args:
        dimension: of the checkpoint's vectors.
    """
    every = np.concatenate(list(theirs.values()))
    known = every[np.isfinite(every).all(axis=1)]
    if not len(known) or not (known == np.round(known)).all():
        return [FRACTIONS]
    if known.shape[1] * BYTE == dimension:
        packed = replace(BITS, said="gives bits packed into bytes (ubinary vectors)", read=_unpacked)
        if not (known < 0).any():
            return [packed]
        # As sentence-transformers' "binary" writes bytes; or the same bytes, read with a sign.
        less = replace(
            BITS,
            said="gives bits packed into bytes, minus 128 (binary vectors)",
            read=lambda rows: _unpacked(rows, SIGNED),
        )
        return [less, packed]
    if known.shape[1] == FLOAT32 * dimension and known.min() >= -SIGNED and known.max() < 2 * SIGNED:
        said = "gives the bytes of float32 as numbers: base64 that is decoded and not read as float32"
        return [Form(said, lambda vectors, theirs: vectors, _floats)]
    values = set(np.unique(known)[:3])
    if values <= {0.0, 1.0}:
        return [BITS]
    if values <= {-1.0, 1.0}:
        return [SIGNS]
    return [Form("gives whole numbers (int8 vectors) in place of fractions", _rounded)]


def _rounded(vectors: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Whole numbers at the scale at which most of them are the other's."""
    known = np.isfinite(vectors).all(axis=1) & np.isfinite(theirs).all(axis=1)
    ours, wanted = vectors[known], theirs[known]
    if not len(ours):
        return vectors
    products = np.einsum("nd,nd->n", ours, wanted) / np.einsum("nd,nd->n", ours, ours).clip(min=1e-30)
    nearest = float(np.median(products))
    scales = [*SCALES, *(nearest * (1 + NEARBY * np.linspace(-1, 1, TRIED)))]
    best = max(scales, key=lambda scale: int((np.round(ours * scale) == wanted).sum()))
    return np.asarray(np.round(vectors * best))


def _floats(rows: np.ndarray) -> np.ndarray:
    """(n, D) float32 of (n, 4·D) of their bytes; NaN where there is no vector."""
    is_known = np.isfinite(rows).all(axis=1)
    numbers = (np.nan_to_num(rows).astype(np.int64) % (2 * SIGNED)).astype(np.uint8)
    with np.errstate(all="ignore"):
        found = np.ascontiguousarray(numbers).view("<f4").astype(float)
    found[~is_known] = np.nan
    return found


def _unpacked(rows: np.ndarray, offset: int = 0) -> np.ndarray:
    """(n, 8·D) bits of (n, D) bytes; NaN where there is no vector."""
    is_known = np.isfinite(rows).all(axis=1)
    bits = bits_of_bytes(np.nan_to_num(rows), offset).astype(float)
    bits[~is_known] = np.nan
    return bits


def bits_of_bytes(rows: np.ndarray, offset: int) -> np.ndarray:
    """(n, 8·D) booleans of (n, D) bytes, signed or not, from each of which an offset was taken."""
    return np.unpackbits(((np.asarray(rows).astype(np.int64) + offset) % 256).astype(np.uint8), axis=1).astype(bool)
