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

Intervals are a jackknife over at most 25 groups of neighbouring texts, since a corpus may have the sentences of an
article one after another. A bootstrap would draw texts twice, which makes pairs of cosine 1, hubs of copies, and ranks
that are too low. Intervals do not cover that ranks and shares depend on N: compare them between audits of the same
texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from embaudit.intervals import MIN_UNITS, around, jackknife_half_width
from embaudit.measures.length.cosine import unit_vectors

FIGURES = (
    *("mean_cosine", "isoscore", "effective_rank", "rankme", "uniformity"),
    *("variance_1", "variance_3", "variance_10"),
    *("top_dimension_share", "hubness_skewness", "anti_hubs"),
)
GROUPS = 25
# Number of dimensions that are reported individually.
TOP_DIMENSIONS = 10
# A variance below this share of the mean squared length is float32 rounding (1e-7, squared).
ROUNDING = 1e-13


@dataclass(frozen=True)
class Figure:
    """One figure with its 95 % interval; None if undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Dimension:
    """One dimension of the unit vectors.

    Attributes:
        contribution: contribution to the mean cosine.
        share: contribution / mean cosine; None if that is not positive.
        mean, deviation: mean and standard deviation of the coordinate over texts.
    """

    dimension: int
    contribution: float
    share: float | None
    mean: float
    deviation: float


@dataclass(frozen=True)
class Geometry:
    """The geometry of N vectors.

    Attributes:
        figures: by name (FIGURES).
        shrinkage: ζ of IsoScore*; None if that is undefined.
        dimensions_for_half: smallest number of dimensions whose contributions add up to half of the mean cosine; None
            if that is not positive.
        top: the dimensions with the largest contributions, largest first.
    """

    texts: int
    dimension: int
    figures: dict[str, Figure]
    shrinkage: float | None
    dimensions_for_half: int | None
    top: list[Dimension]

    @property
    def undefined(self) -> list[str]:
        """The figures without a value."""
        return [name for name, figure in self.figures.items() if figure.value is None]


def measure_geometry(vectors: np.ndarray, neighbours: int) -> Geometry:
    """All figures of (N, d) vectors, with intervals if there are at least ten texts.

    Args:
        neighbours: k of hubness.

    Raises:
        MeasureError: if a vector is zero or not finite; the message has its index.
    """
    N, d = vectors.shape
    if N < 2:
        return Geometry(N, d, dict.fromkeys(FIGURES, Figure(None)), None, None, [])
    X, units = vectors.astype(np.float64), unit_vectors(vectors)
    cosines = pair_cosines(units)
    values = _values(X, units, cosines, neighbours)
    replicates = [
        _values(X[kept], units[kept], cosines[np.ix_(kept, kept)], neighbours) for kept in _without_each_group(N)
    ]
    by_dimension = contributions(units)
    order = np.argsort(-by_dimension, kind="stable")
    centred = X - X.mean(axis=0)
    return Geometry(
        N,
        d,
        {name: _with_interval(values[name], [one[name] for one in replicates]) for name in FIGURES},
        None if values["isoscore"] is None else shrinkage(centred, eigenvalues(centred)),
        _dimensions_for_half(by_dimension[order]),
        [_dimension(int(place), units, by_dimension) for place in order[:TOP_DIMENSIONS]],
    )


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


def _values(X: np.ndarray, units: np.ndarray, cosines: np.ndarray, k: int) -> dict[str, float | None]:
    by_dimension = contributions(units)
    mean = float(by_dimension.sum())
    return {
        "mean_cosine": mean,
        **_spectral(X),
        "rankme": entropy_rank(np.sqrt(eigenvalues(X))),
        "uniformity": uniformity(cosines),
        "top_dimension_share": float(by_dimension.max() / mean) if mean > 0 else None,
        **_hubness(cosines, k),
    }


def _spectral(X: np.ndarray) -> dict[str, float | None]:
    """Figures from the covariance's eigenvalues; None if vectors differ only by rounding."""
    centred, d = X - X.mean(axis=0), X.shape[1]
    values = eigenvalues(centred)
    total = float(values.sum())
    if total <= ROUNDING * np.square(X).sum() / len(X):
        return dict.fromkeys(("isoscore", "effective_rank", "variance_1", "variance_3", "variance_10"))
    return {
        "isoscore": isoscore(values, d, shrinkage(centred, values)) if d > 1 else None,
        "effective_rank": entropy_rank(values),
        **{f"variance_{k}": float(values[:k].sum() / total) for k in (1, 3, 10)},
    }


def _hubness(cosines: np.ndarray, k: int) -> dict[str, float | None]:
    """Undefined up to 2k texts, among which most texts are neighbours of most others."""
    if len(cosines) <= 2 * k:
        return {"hubness_skewness": None, "anti_hubs": None}
    counts = occurrences(cosines, k)
    return {"hubness_skewness": skewness(counts), "anti_hubs": float((counts == 0).mean())}


def _without_each_group(N: int) -> Iterator[np.ndarray]:
    """Indices of the remaining texts without each group; nothing if there are too few for an interval."""
    places = np.arange(N)
    if N >= MIN_UNITS:
        for group in np.array_split(places, min(GROUPS, N)):
            yield np.delete(places, group)


def _with_interval(value: float | None, without: list[float | None]) -> Figure:
    known = [one for one in without if one is not None]
    if value is None or not known or len(known) < len(without):
        return Figure(value)
    return Figure(value, *around(value, jackknife_half_width(np.array(known))))


def _dimensions_for_half(descending: np.ndarray) -> int | None:
    mean = descending.sum()
    return int(np.argmax(descending.cumsum() >= mean / 2)) + 1 if mean > 0 else None


def _dimension(place: int, units: np.ndarray, by_dimension: np.ndarray) -> Dimension:
    mean, own = by_dimension.sum(), float(by_dimension[place])
    coordinate = units[:, place]
    share = own / float(mean) if mean > 0 else None
    return Dimension(place, own, share, float(coordinate.mean()), float(coordinate.std()))
