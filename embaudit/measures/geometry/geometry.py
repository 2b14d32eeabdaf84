"""The geometry of a cloud of text vectors: all figures with intervals, and the dimensions that dominate its cosine.

Equations and sources of the figures are in ``figures``. Intervals do not cover that ranks and shares depend on N:
compare them between audits of the same texts. There are four ways to an interval: no one of them is right for all.

A block is what is drawn at random: a text, or, if texts are read in the order of their source, one of 25 runs of
neighbouring texts, since a corpus may have the sentences of an article one after another. All ways leave out whole
blocks. (Runs of texts that were drawn at random would measure how much articles differ, which the draw averages out:
intervals were 1.1 to 1.6 times as wide as samples of Wikipedia differ.) A bootstrap would draw texts twice, which makes
pairs of cosine 1, hubs of copies, and ranks that are too low.

**Smooth figures** (mean cosine, IsoScore*, ranks, uniformity, largest share of a dimension): a jackknife over 25 groups
of blocks with Student's t of 24 degrees of freedom (Efron and Stein 1981; for groups that differ by a text, which
matters to ranks of fewer texts than dimensions, Busing et al. 1999).

**Variance shares**: influence functions (Critchley 1985, Biometrika 72). With the projection P on the first k
directions and s the share of k,

    ψ_i = (‖P(x_i − x̄)‖² − s·‖x_i − x̄‖²) / mean of ‖x_j − x̄‖²,    standard error² = Σ ψ_i² / N²,

where P and x̄ of text i come from the other four fifths of the texts (cross-fitting: Chernozhukov et al. 2018,
Econometrics Journal 21). Directions that were fitted to a text exaggerate its share, and leaving out a few texts makes
components change places more than new samples do: either is 1.1 to 1.2 times too wide.

**Hubness** depends on neighbours, which change by jumps: leaving out a few texts overstates its variance by 1.8. The
jackknife leaves out a third of the texts instead (Shao and Wu 1989, Ann. Statist. 17: many must be left out if a figure
is not smooth), averaged over 25 deals in thirds. As hubs are few, its distribution is skewed to the right, so the
interval is symmetric in asinh θ, which is like log θ for large values and like θ for small ones.

**Anti-hubs** are a share of texts: Wilson's interval, which treats texts as independent. A text is nobody's neighbour
nearly independently of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from embaudit.measures.geometry import Dimension
from embaudit.measures.geometry.figures import (
    COMPONENTS,
    contributions,
    eigenvalues,
    hub_figures,
    pair_cosines,
    shrinkage,
    skewness,
    smooth_figures,
)
from embaudit.measures.length.spans import unit_vectors
from embaudit.statistics import MIN_UNITS, NORMAL, grouped_half_width, score_share, student_half_width
from embaudit.words.estimate import Estimate

GROUPS = 25
FOLDS = 5
PARTS, DEALS = 3, 25
# Of so many times k nearest neighbours, k are left when a third of the texts is left out.
NEIGHBOURS_KEPT = 5
Values = dict[str, float | None]


def estimates_of(
    values: Values, X: np.ndarray, units: np.ndarray, cosines: np.ndarray, k: int, *, in_order: bool
) -> dict[str, Estimate]:
    """Each figure with its interval; none for all of them below ten texts, and for undefined figures.

    Args:
        values: the figures of all texts.
        X, units, cosines: as in ``figures``.
        in_order: whether the texts are neighbours in their source, not drawn at random.
    """
    N = len(X)
    if N < MIN_UNITS:
        return {name: Estimate(value) for name, value in values.items()}
    blocks = np.arange(N) * min(GROUPS, N) // N if in_order else np.arange(N)
    generator = np.random.default_rng(N)
    groups = list(_deal(blocks, GROUPS, generator))
    without = [smooth_figures(X[kept], units[kept], cosines[np.ix_(kept, kept)]) for kept in groups]
    shares = 1 - np.stack(groups).mean(axis=1)
    return {
        **{name: _jackknife(values[name], [one[name] for one in without], shares) for name in without[0]},
        **_of_variance_shares(values, X, blocks, list(_deal(blocks, FOLDS, generator))),
        "hubness_skewness": _of_hubness(values["hubness_skewness"], cosines, k, blocks, generator),
        "anti_hubs": _of_share(values["anti_hubs"], N),
    }


def _deal(blocks: np.ndarray, parts: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Deals blocks at random into as many parts, and yields (N,) whether a text is left, without each part."""
    count = int(blocks[-1]) + 1
    parts = min(parts, count)
    of_block = generator.permutation(count) % parts
    for part in range(parts):
        yield of_block[blocks] != part


def _jackknife(value: float | None, without: list[float | None], shares: np.ndarray) -> Estimate:
    known = [one for one in without if one is not None]
    if value is None or len(known) < len(without):
        return Estimate(value)
    return Estimate.around(value, grouped_half_width(value, np.array(known), shares))


def _of_share(value: float | None, N: int) -> Estimate:
    return Estimate() if value is None else Estimate(value, *score_share(round(value * N), N))


def _of_variance_shares(
    values: Values, X: np.ndarray, blocks: np.ndarray, others: list[np.ndarray]
) -> dict[str, Estimate]:
    """Student's interval of the mean of the blocks' summed ψ, around each share."""
    within, squares = np.empty((len(X), len(COMPONENTS))), np.empty(len(X))
    for kept in others:
        off, fold = X - X[kept].mean(axis=0), ~kept
        along = np.square(off[fold] @ _first_directions(off[kept], max(COMPONENTS)))
        within[fold] = np.stack([along[:, :k].sum(axis=1) for k in COMPONENTS], axis=1)
        squares[fold] = np.square(off[fold]).sum(axis=1)
    found = {}
    for k, own in zip(COMPONENTS, within.T, strict=True):
        name = f"variance_{k}"
        value = values[name]
        # So few directions have a variance that the share must be 1.
        if value is None or value > 1 - 1e-12:
            found[name] = Estimate(value)
            continue
        influence = (own - own.sum() / squares.sum() * squares) / squares.mean()
        sums = np.bincount(blocks, weights=influence)
        half = student_half_width(sums)
        found[name] = Estimate.around(value, None if half is None else half * len(sums) / len(X))
    return found


def _first_directions(X: np.ndarray, most: int) -> np.ndarray:
    """(d, k) the right singular vectors of the ``most`` largest singular values of centred X, largest first."""
    N, d = X.shape
    if d <= N:
        return np.asarray(np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :most])
    squares, left = np.linalg.eigh(X @ X.T)
    left = left[:, ::-1][:, : min(most, N - 1)]
    return np.asarray(X.T @ left / np.sqrt(squares[::-1][: left.shape[1]].clip(min=1e-300)))


def _of_hubness(
    value: float | None, cosines: np.ndarray, k: int, blocks: np.ndarray, generator: np.random.Generator
) -> Estimate:
    """sinh(asinh θ ± 1.96·s/√(1 + θ²)), s² the mean of the jackknife's variance over deals."""
    if value is None:
        return Estimate()
    without = _skewness_without(cosines, k)
    variances = []
    for _ in range(DEALS):
        left = [without(kept) for kept in _deal(blocks, PARTS, generator)]
        known = [one for one in left if one is not None]
        if len(known) < len(left):
            return Estimate(value)
        variances.append((PARTS - 1) * np.var(known))
    half = NORMAL * float(np.sqrt(np.mean(variances) / (1 + value**2)))
    ends = (float(np.sinh(np.arcsinh(value) + side * half)) for side in (-1, 1)) if half > 0 else ()
    return Estimate(value, *ends)


def _skewness_without(cosines: np.ndarray, k: int) -> Callable[[np.ndarray], float | None]:
    """Hubness of the texts that are left; neighbours are sorted only once.

    None up to 2k texts. A text with fewer than k left among its 5k nearest has only these.
    """
    most = min(NEIGHBOURS_KEPT * k, len(cosines) - 1)
    nearest = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
    nearest = np.take_along_axis(nearest, np.argsort(-np.take_along_axis(cosines, nearest, axis=1), axis=1), axis=1)

    def without(kept: np.ndarray) -> float | None:
        if kept.sum() <= 2 * k:
            return None
        is_left = kept[nearest[kept]]
        is_near = is_left & (is_left.cumsum(axis=1) <= k)
        counts = np.bincount(nearest[kept][is_near], minlength=len(cosines))
        return skewness(counts[kept])

    return without


FIGURES = (
    *("mean_cosine", "isoscore", "effective_rank", "rankme", "uniformity"),
    *("variance_1", "variance_3", "variance_10"),
    *("top_dimension_share", "hubness_skewness", "anti_hubs"),
)
# Number of dimensions that are reported individually.
TOP_DIMENSIONS = 10


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
    mean, deviation = float(coordinate.mean()), float(coordinate.std())
    return Dimension(dimension=place, contribution=own, share=share, mean=mean, deviation=deviation)
