"""How a cloud of text vectors fills its space: anisotropy, effective dimensions, dominant dimensions, and hubs.

X is (N, d), the vectors as served, one per text; û is a vector scaled to unit length; C = (1/N) Σ (x−x̄)(x−x̄)ᵀ, with
eigenvalues λ_1 ≥ … ≥ λ_d. A pair is two different texts.

    mean cosine            mean of û·v̂ over pairs                        Ethayarajh 2019, arXiv 1909.00512
    contribution of i      mean of û_i v̂_i over pairs                    Timkey and van Schijndel 2021, arXiv 2109.04404
    IsoScore*              (PR − 1)/(d − 1), PR = (Σλ')²/Σλ'²            Rudman and Eickhoff 2024, arXiv 2305.19358
    effective rank         exp(−Σ p log p), p = λ/Σλ                     Roy and Vetterli 2007, EUSIPCO
    RankMe                 the same with p = σ/Σσ, σ X's singular values Garrido et al. 2023, arXiv 2210.02885
    uniformity             log of the mean of exp(−2‖û − v̂‖²) over pairs Wang and Isola 2020, arXiv 2005.10242
    variance share of k    (λ_1 + … + λ_k)/Σλ
    hubness                skewness of N_k, the number of texts that have a text among their k nearest by cosine;
                           anti-hubs: the share with N_k = 0             Radovanović et al. 2010, JMLR 11

All are invariant under scaling of X; all but the contributions under rotation.
"""

from __future__ import annotations

import numpy as np

# A variance below this share of the mean squared length is float32 rounding (1e-7, squared).
ROUNDING = 1e-13
# Shares of the variance are of so many first components.
COMPONENTS = (1, 3, 10)


def pair_cosines(units: np.ndarray) -> np.ndarray:
    """(N, N) cosines of unit vectors; −∞ on the diagonal."""
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    return cosines


def contributions(units: np.ndarray) -> np.ndarray:
    """(d,) contribution of each dimension to the mean cosine, ((Σû_i)² − Σû_i²) / (N(N−1)); they add up to it."""
    N = len(units)
    return np.asarray((np.square(units.sum(axis=0)) - np.square(units).sum(axis=0)) / (N * (N - 1)))


def eigenvalues(X: np.ndarray) -> np.ndarray:
    """The min(N, d) largest eigenvalues of XᵀX/N, largest first, with rounding errors set to 0.

    Computed from the smaller of XᵀX and XXᵀ.
    """
    N, d = X.shape
    found = np.linalg.eigvalsh(X.T @ X if d <= N else X @ X.T)[::-1] / N
    return np.where(found > found[0] * max(N, d) * np.finfo(np.float64).eps, found, 0.0)


def entropy_rank(weights: np.ndarray) -> float:
    """exp(−Σ p log p), p = weights/Σ weights: the number of equal weights with this entropy; 0 log 0 is 0."""
    p = weights[weights > 0] / weights.sum()
    return float(np.exp(max(0.0, -(p * np.log(p)).sum())))


def shrinkage(X: np.ndarray, values: np.ndarray) -> float:
    """ζ of Ledoit and Wolf 2004 (J. Multivariate Analysis 88) for the target mI, m = tr C/d.

    ζ = min(b², ‖C − mI‖²)/‖C − mI‖², b² = (1/N²) Σ ‖xxᵀ − C‖² in Frobenius norms. It is close to 1 if X is isotropic;
    otherwise it tends to 0 as N grows.

    Args:
        X: (N, d), centred.
        values: C's eigenvalues.
    """
    N, d = X.shape
    squared = float(np.square(values).sum())
    distance = squared - values.sum() ** 2 / d
    noise = (np.square(np.square(X).sum(axis=1)).mean() - squared) / N
    return float(min(max(noise, 0.0), distance) / distance) if distance > 0 else 0.0


def isoscore(values: np.ndarray, d: int, zeta: float) -> float:
    """IsoScore* from C's eigenvalues: 1 for equal variance in all directions, 0 for variance in only one.

    The paper's steps (λ' scaled to length √d, its distance from the vector of ones, the defect, the share of dimensions
    used) amount to (PR − 1)/(d − 1) with the participation ratio PR = (Σλ')²/Σλ'² of the shrunk covariance
    (1 − ζ)C + ζT. In the paper, T comes from a larger sample, and ζ is a parameter; here T = mI and ζ is ``shrinkage``,
    since there is no larger sample. Without it, N isotropic Gaussian vectors score about 1/(1 + d/N) instead of 1.

    Args:
        values: (m,) eigenvalues; the other d − m are 0.
        d: at least 2.
    """
    mean = values.sum() / d
    squared = (1 - zeta) ** 2 * np.square(values).sum() + (1 - (1 - zeta) ** 2) * d * mean**2
    return float(max(0.0, (values.sum() ** 2 / squared - 1) / (d - 1)))


def uniformity(cosines: np.ndarray) -> float:
    """log of the mean of exp(−2‖û − v̂‖²) = exp(−4(1 − cos)) over pairs: 0 if all vectors are equal, −4 if all are
    orthogonal."""
    N = len(cosines)
    return float(np.log(np.exp(4 * (cosines - 1)).sum() / (N * (N - 1))))


def occurrences(cosines: np.ndarray, k: int) -> np.ndarray:
    """(N,) N_k: the number of texts that have each text among their k nearest."""
    nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    return np.bincount(nearest.ravel(), minlength=len(cosines))


def skewness(counts: np.ndarray) -> float | None:
    """Third central moment over the cubed standard deviation; None if the counts are constant."""
    off = counts - counts.mean()
    variance = np.square(off).mean()
    return float((off**3).mean() / variance**1.5) if variance > 0 else None


def smooth_figures(X: np.ndarray, units: np.ndarray, cosines: np.ndarray) -> dict[str, float | None]:
    """All figures but those of hubs: they change little when a few texts are left out.

    Args:
        X: (N, d) float64, the vectors.
        units: the same of unit length.
        cosines: (N, N), from ``pair_cosines``.
    """
    by_dimension = contributions(units)
    mean = float(by_dimension.sum())
    return {
        "mean_cosine": mean,
        **spectral_figures(X),
        "rankme": entropy_rank(np.sqrt(eigenvalues(X))),
        "uniformity": uniformity(cosines),
        "top_dimension_share": float(by_dimension.max() / mean) if mean > 0 else None,
    }


def spectral_figures(X: np.ndarray) -> dict[str, float | None]:
    """Figures from the covariance's eigenvalues; None if vectors differ only by rounding."""
    centred, d = X - X.mean(axis=0), X.shape[1]
    values = eigenvalues(centred)
    total = float(values.sum())
    if total <= ROUNDING * np.square(X).sum() / len(X):
        return dict.fromkeys(("isoscore", "effective_rank", *(f"variance_{k}" for k in COMPONENTS)))
    return {
        "isoscore": isoscore(values, d, shrinkage(centred, values)) if d > 1 else None,
        "effective_rank": entropy_rank(values),
        **{f"variance_{k}": float(values[:k].sum() / total) for k in COMPONENTS},
    }


def hub_figures(cosines: np.ndarray, k: int) -> dict[str, float | None]:
    """Undefined up to 2k texts, among which most texts are neighbours of most others."""
    if len(cosines) <= 2 * k:
        return {"hubness_skewness": None, "anti_hubs": None}
    counts = occurrences(cosines, k)
    return {"hubness_skewness": skewness(counts), "anti_hubs": float((counts == 0).mean())}
