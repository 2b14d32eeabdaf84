"""The geometry of a cloud of text vectors: all figures with intervals, and the dimensions that dominate its cosine.

Equations and sources are in ``figures``, the intervals in ``intervals``. Intervals do not cover that ranks and shares
depend on N: compare them between audits of the same texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.measures.geometry.figures import (
    contributions,
    eigenvalues,
    hub_figures,
    pair_cosines,
    shrinkage,
    smooth_figures,
)
from embaudit.measures.geometry.intervals import estimates_of
from embaudit.measures.length.cosine import unit_vectors
from embaudit.words.estimate import Estimate

FIGURES = (
    *("mean_cosine", "isoscore", "effective_rank", "rankme", "uniformity"),
    *("variance_1", "variance_3", "variance_10"),
    *("top_dimension_share", "hubness_skewness", "anti_hubs"),
)
# Number of dimensions that are reported individually.
TOP_DIMENSIONS = 10


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
    figures: dict[str, Estimate]
    shrinkage: float | None
    dimensions_for_half: int | None
    top: list[Dimension]

    @property
    def undefined(self) -> list[str]:
        """The figures without a value."""
        return [name for name, figure in self.figures.items() if figure.value is None]


def measure_geometry(vectors: np.ndarray, neighbours: int, *, in_order: bool = False) -> Geometry:
    """All figures of (N, d) vectors, with intervals if there are at least ten texts.

    Args:
        neighbours: k of hubness.
        in_order: whether the texts are neighbours in their source, not drawn at random.

    Raises:
        MeasureError: if a vector is zero or not finite; the message has its index.
    """
    N, d = vectors.shape
    if N < 2:
        return Geometry(N, d, dict.fromkeys(FIGURES, Estimate()), None, None, [])
    X, units = vectors.astype(np.float64), unit_vectors(vectors)
    cosines = pair_cosines(units)
    values = {**smooth_figures(X, units, cosines), **hub_figures(cosines, neighbours)}
    estimates = estimates_of(values, X, units, cosines, neighbours, in_order=in_order)
    by_dimension = contributions(units)
    order = np.argsort(-by_dimension, kind="stable")
    centred = X - X.mean(axis=0)
    return Geometry(
        N,
        d,
        {name: estimates[name] for name in FIGURES},
        None if values["isoscore"] is None else shrinkage(centred, eigenvalues(centred)),
        _dimensions_for_half(by_dimension[order]),
        [_dimension(int(place), units, by_dimension) for place in order[:TOP_DIMENSIONS]],
    )


def _dimensions_for_half(descending: np.ndarray) -> int | None:
    mean = descending.sum()
    return int(np.argmax(descending.cumsum() >= mean / 2)) + 1 if mean > 0 else None


def _dimension(place: int, units: np.ndarray, by_dimension: np.ndarray) -> Dimension:
    mean, own = by_dimension.sum(), float(by_dimension[place])
    coordinate = units[:, place]
    share = own / float(mean) if mean > 0 else None
    return Dimension(place, own, share, float(coordinate.mean()), float(coordinate.std()))
