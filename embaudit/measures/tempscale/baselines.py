"""What people do instead of a temperature: read a document in pieces, whiten, subtract the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embaudit.downstream.task import Vectors
from embaudit.errors import NotMeasurable
from embaudit.mitigation.space import Centring, Whitening


def pieces_of(ids: Sequence[int], size: int) -> list[list[int]]:
    """Consecutive pieces of at most ``size`` tokens; a text without a token is one empty piece."""
    return [list(ids[start : start + size]) for start in range(0, max(len(ids), 1), size)]


def average_pieces(vectors: np.ndarray, owners: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w v / Σ w over the pieces of each text, (texts, d) float64.

    Args:
        vectors: (pieces, d), as served.
        owners: (pieces,) which text a piece is of; every text has one.
        weights: (pieces,) tokens of the piece, so that a short tail counts for little.
    """
    sums = np.zeros((int(owners.max()) + 1, vectors.shape[1]))
    np.add.at(sums, owners, vectors.astype(np.float64) * weights[:, None])
    return sums / np.bincount(owners, weights=weights)[:, None]


def fitted_baselines(vectors: Vectors, fitted_on: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Whitened and centred vectors of every side, fitted on the masked texts alone; what cannot be fitted is absent."""
    fitted = np.concatenate([vectors[side][mask] for side, mask in fitted_on.items()])
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, kind in (("whitening", Whitening), ("centring", Centring)):
        try:
            transform = kind(fitted)
        except NotMeasurable:
            continue
        found[name] = {side: transform(rows) for side, rows in vectors.items()}
    return found
