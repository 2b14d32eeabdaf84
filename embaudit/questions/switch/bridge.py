"""Linear maps from NEW's vectors to OLD's space, so that NEW's queries can search the index that OLD built.

Two of the maps of Vejendla 2025 (arXiv 2509.23471, "Drift-Adapter"), on rows x of NEW and y of OLD, centred at their
means over the n texts of the fit:

orthogonal       R = U Vᵀ from the singular value decomposition Xᵀ Y = U S Vᵀ, times Σ S / ‖X‖² (Schönemann 1966);
                 semi-orthogonal if the dimensions differ, as of zero-padded rows
least squares    W = (Xᵀ X + λ I)⁻¹ Xᵀ Y (ridge regression), with the λ of a grid whose error on texts left out one at a
                 time is smallest: with fewer texts than dimensions, the plain solution fits these and no others
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

# Of a fit. Whoever builds a bridge encodes so many rows of the index again.
MOST_TEXTS = 2_000
# Of the mean variance of a direction, times the number of texts.
LAMBDAS = np.logspace(-4, 3, 15)


@dataclass(frozen=True)
class LinearMap:
    """x ↦ (x − from_mean) · matrix + to_mean.

    Attributes:
        matrix: (D′, D)
        penalty: λ; 0 if there is none.
    """

    matrix: np.ndarray
    from_mean: np.ndarray
    to_mean: np.ndarray
    penalty: float = 0.0

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """(n, D) float64 in OLD's space from (n, D′) rows of NEW."""
        return np.asarray((rows - self.from_mean) @ self.matrix + self.to_mean)


def fit_orthogonal(new: np.ndarray, old: np.ndarray) -> LinearMap:
    """From (n, D′) and (n, D) float64 vectors of the same texts."""
    from_mean, to_mean = new.mean(axis=0), old.mean(axis=0)
    X, Y = new - from_mean, old - to_mean
    U, S, Vt = _svd(X.T @ Y)
    scale = S.sum() / max(float((X**2).sum()), 1e-30)
    return LinearMap(scale * (U @ Vt), from_mean, to_mean)


def _svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of fewer texts than dimensions, the fast algorithm may not converge; the slow one does."""
    import scipy

    try:
        U, S, Vt = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        U, S, Vt = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    return U, S, Vt


def fit_least_squares(new: np.ndarray, old: np.ndarray) -> LinearMap:
    """From (n, D′) and (n, D) float64 vectors of the same texts, n ≥ 2."""
    from sklearn.linear_model import RidgeCV

    X = new - new.mean(axis=0)
    unit = max(float((X**2).sum()) / X.shape[1], 1e-30)
    # Without cv, each text is left out in closed form, and all dimensions share one λ.
    try:
        found = RidgeCV(alphas=LAMBDAS * unit).fit(new, old)
    except np.linalg.LinAlgError:
        # As above; this one decomposes the texts' products with each other, which are symmetric.
        found = RidgeCV(alphas=LAMBDAS * unit, gcv_mode="eigen").fit(new, old)
    return LinearMap(found.coef_.T, new.mean(axis=0), old.mean(axis=0), float(found.alpha_))


Fit = Callable[[np.ndarray, np.ndarray], LinearMap]
MAPS: Mapping[str, Fit] = {"orthogonal map": fit_orthogonal, "least-squares map": fit_least_squares}
