"""Transforms of the output space, fitted on vectors of ordinary texts and applied to every vector."""

from __future__ import annotations

import numpy as np

from embaudit.words.errors import NotMeasurable

# Directions with less than this share of the largest variance are rounding noise, which whitening would amplify.
MIN_VARIANCE = 1e-9
# Mu and Viswanath (2018) remove D ≈ d/100 components.
DIMENSIONS_PER_COMPONENT = 100


class Centring:
    """v − mean, with the mean over the vectors it is fitted on."""

    def __init__(self, fitted: np.ndarray) -> None:
        if len(fitted) < 2:
            raise NotMeasurable(f"{len(fitted)} vectors are too few to fit a mean.")
        self.mean = fitted.astype(np.float64).mean(axis=0)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return vectors.astype(np.float64) - self.mean


class WithoutComponents:
    """(v − mean)(I − U Uᵀ), with U the first D = max(1, round(d/100)) principal directions.

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
    """(v − mean) U Λ^(−1/2): gives the vectors it is fitted on unit variance in every direction in which they vary."""

    def __init__(self, fitted: np.ndarray) -> None:
        from sklearn.decomposition import PCA

        if len(fitted) < 2:
            raise NotMeasurable(f"{len(fitted)} vectors are too few to fit a covariance.")
        rows = fitted.astype(np.float64)
        if not np.ptp(rows, axis=0).any():
            raise NotMeasurable("all vectors to fit on are equal: there is no covariance to whiten.")
        variances = PCA(svd_solver="full").fit(rows).explained_variance_
        self.directions = int((variances > MIN_VARIANCE * variances[0]).sum())
        self._pca = PCA(self.directions, whiten=True, svd_solver="full").fit(rows)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        whitened: np.ndarray = self._pca.transform(vectors.astype(np.float64))
        return whitened
