"""What people do instead of a temperature: read a document in pieces, whiten, subtract the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embaudit.downstream.task import Vectors
from embaudit.errors import NotMeasurable

# Directions with less than this share of the largest variance are rounding: whitening would blow them up.
MIN_VARIANCE = 1e-9


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


class Centring:
    """v − mean, the mean over the fitted vectors."""

    def __init__(self, fitted: np.ndarray) -> None:
        if len(fitted) < 2:
            raise NotMeasurable(f"{len(fitted)} vectors are too few to fit a mean on.")
        self.mean = fitted.astype(np.float64).mean(axis=0)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return vectors.astype(np.float64) - self.mean


class Whitening:
    """(v − mean) U Λ^(−1/2): the fitted vectors get covariance I in every direction that they vary in."""

    def __init__(self, fitted: np.ndarray) -> None:
        from sklearn.decomposition import PCA

        if len(fitted) < 2:
            raise NotMeasurable(f"{len(fitted)} vectors are too few to fit a covariance on.")
        rows = fitted.astype(np.float64)
        if not np.ptp(rows, axis=0).any():
            raise NotMeasurable("all fitted vectors are alike: there is no covariance to whiten.")
        variances = PCA(svd_solver="full").fit(rows).explained_variance_
        self.directions = int((variances > MIN_VARIANCE * variances[0]).sum())
        self._pca = PCA(self.directions, whiten=True, svd_solver="full").fit(rows)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        whitened: np.ndarray = self._pca.transform(vectors.astype(np.float64))
        return whitened


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
