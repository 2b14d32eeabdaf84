"""Changes of the output space that are fitted on vectors of ordinary texts, and then applied to every vector."""

from __future__ import annotations

import numpy as np

from embaudit.errors import NotMeasurable

# Directions with less than this share of the largest variance are rounding: whitening would blow them up.
MIN_VARIANCE = 1e-9
# Mu and Viswanath (2018) remove D ≈ d/100 components.
DIMENSIONS_PER_COMPONENT = 100


class Centring:
    """v − mean, the mean over the fitted vectors."""

    def __init__(self, fitted: np.ndarray) -> None:
        if len(fitted) < 2:
            raise NotMeasurable(f"{len(fitted)} vectors are too few to fit a mean on.")
        self.mean = fitted.astype(np.float64).mean(axis=0)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return vectors.astype(np.float64) - self.mean


class WithoutComponents:
    """(v − mean)(I − U Uᵀ), U the D = max(1, round(d/100)) first principal directions of the fitted vectors.

    "All but the top" (Mu and Viswanath 2018, arXiv 1702.01417).
    """

    def __init__(self, fitted: np.ndarray) -> None:
        self._centring = Centring(fitted)
        count = max(1, round(fitted.shape[1] / DIMENSIONS_PER_COMPONENT))
        self.directions = np.linalg.svd(self._centring(fitted), full_matrices=False)[2][:count]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        centred = self._centring(vectors)
        return centred - centred @ self.directions.T @ self.directions


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
