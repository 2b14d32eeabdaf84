"""Replacements for the input embeddings of severe tokens.

Rare tokens are severe if their input embedding was hardly trained (arXiv 2507.18171, open questions). With the rows
e_1 … e_V of the vocabulary and S the severe ids:

    unk    the row of the unknown token, which the model was trained to read for tokens that it does not know
    mean   the mean of e_v over v ∉ S
    scale  e_t · median_{v ∉ S} ‖e_v‖ / ‖e_t‖: its own direction, at an ordinary length
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import numpy as np

How = Literal["unk", "mean", "scale"]
HOWS: tuple[How, ...] = get_args(How)
# What ``embaudit.remedies.mitigation.write`` can do to a checkpoint: replace rows, or remove tokens from the tokenizer.
Way = Literal[How, "prune"]
WAYS: tuple[Way, ...] = (*HOWS, "prune")


def replaced(embeddings: np.ndarray, severe: Collection[int], how: How, unknown: int | None = None) -> np.ndarray:
    """New rows for the severe ids in ascending order, (|S|, d) float64; ``scale`` leaves zero rows unchanged.

    Args:
        embeddings: (V, d) input embeddings.
        unknown: id of the unknown token; required for ``unk``.
    """
    ids = np.array(sorted(severe), dtype=np.int64)
    rows = embeddings.astype(np.float64)
    others = np.delete(rows, ids, axis=0)
    if how == "mean":
        return np.repeat(others.mean(axis=0)[None], len(ids), axis=0)
    if how == "unk":
        assert unknown is not None
        return np.repeat(rows[unknown][None], len(ids), axis=0)
    norms = np.linalg.norm(rows[ids], axis=1, keepdims=True)
    ordinary = float(np.median(np.linalg.norm(others, axis=1)))
    return np.where(norms > 0, rows[ids] * (ordinary / np.where(norms > 0, norms, 1)), rows[ids])
