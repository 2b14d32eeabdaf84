"""Hashes of rows: equal for the same bits, the same in every process and with every version of numpy."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import numpy as np

# 2⁶⁴ over the golden ratio, and the rounds of splitmix64 (Steele, Lea and Flood 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def mixed(values: np.ndarray) -> np.ndarray:
    """(n,) uint64, each bit of which depends on every bit of the (n,) uint64 values; no two become one."""
    found = values.astype(np.uint64)
    for shift, factor in ROUNDS:
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(found ^ (found >> np.uint64(31)))


def hash_rows(vectors: np.ndarray) -> np.ndarray:
    """(n,) uint64 Σ w_i · x_i mod 2⁶⁴ of the 32-bit words x of each row, for odd w (multilinear hashing)."""
    vectors = np.ascontiguousarray(vectors)
    width = vectors.dtype.itemsize * vectors.shape[1]
    raw = vectors.view(np.uint8).reshape(len(vectors), width)
    if width % 4:
        raw = np.pad(raw, ((0, 0), (0, -width % 4)))
    words = np.ascontiguousarray(raw).view(np.uint32)
    return np.asarray(words.astype(np.uint64) @ _weights(words.shape[1]))


def hash_values(values: Iterable[object], count: int) -> np.ndarray:
    """(n,) uint64 of texts or ids, as they are written; 0 for None."""
    return np.fromiter((0 if one is None else _hash(str(one)) for one in values), np.uint64, count)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=64)
def _weights(words: int) -> np.ndarray:
    # Odd, so that no single bit of a word can vanish.
    return mixed(np.arange(1, words + 1, dtype=np.uint64) * GOLDEN) | np.uint64(1)
