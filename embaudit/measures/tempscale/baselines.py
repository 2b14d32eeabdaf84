"""Alternatives to a temperature: averaging over chunks of a document, whitening, subtracting the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embaudit.corpora.downstream.task import Vectors
from embaudit.remedies.mitigation.space import Centring, Whitening
from embaudit.words.errors import NotMeasurable


def pieces_of(ids: Sequence[int], size: int) -> list[list[int]]:
    """Consecutive chunks of at most ``size`` tokens; a text without tokens is one empty chunk."""
    return [list(ids[start : start + size]) for start in range(0, max(len(ids), 1), size)]


def average_pieces(vectors: np.ndarray, owners: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w v / Σ w over the chunks of each text, (texts, d) float64.

    Args:
        vectors: (pieces, d), as served.
        owners: (pieces,) index of each chunk's text; every text has a chunk.
        weights: (pieces,) number of tokens of each chunk, so that a short last one has little weight.
    """
    sums = np.zeros((int(owners.max()) + 1, vectors.shape[1]))
    np.add.at(sums, owners, vectors.astype(np.float64) * weights[:, None])
    return sums / np.bincount(owners, weights=weights)[:, None]


def fitted_baselines(vectors: Vectors, fitted_on: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Whitened and centred vectors of every side, fitted on the masked texts only; omitted if they cannot be fitted."""
    fitted = np.concatenate([vectors[side][mask] for side, mask in fitted_on.items()])
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, kind in (("whitening", Whitening), ("centring", Centring)):
        try:
            transform = kind(fitted)
        except NotMeasurable:
            continue
        found[name] = {side: transform(rows) for side, rows in vectors.items()}
    return found
