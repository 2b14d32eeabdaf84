"""What the switch changes where there are judgements: NEW − OLD, paired.

Means over queries, and ratios of two means, with intervals over resampled units.

Linear maps from NEW's vectors to OLD's space, so that NEW's queries can search the index that OLD built.

Two of the maps of Vejendla 2025 (arXiv 2509.23471, "Drift-Adapter"), on rows x of NEW and y of OLD, centred at their
means over the n texts of the fit:

orthogonal       R = U Vᵀ from the singular value decomposition Xᵀ Y = U S Vᵀ, times Σ S / ‖X‖² (Schönemann 1966);
                 semi-orthogonal if the dimensions differ, as of zero-padded rows
least squares    W = (Xᵀ X + λ I)⁻¹ Xᵀ Y (ridge regression), with the λ of a grid whose error on texts left out one at a
                 time is smallest: with fewer texts than dimensions, the plain solution fits these and no others

How far the two vectors of the same text are apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embaudit.corpora.downstream import unit_rows
from embaudit.measures.quality.scores import CollectionScorer, PairScorer
from embaudit.questions.parity.compare import KindDifference, compare_kind, is_apart, is_rounding
from embaudit.questions.switch.material import OldAndNew, SwitchedPairs, SwitchedSearch
from embaudit.statistics import exact_share, percentile_intervals, quantile_ranks, unit_weights
from embaudit.words.estimate import Estimate


@dataclass(frozen=True)
class ScoreChange:
    """One score of both, and NEW − OLD."""

    name: str
    metric: str
    old: Estimate
    new: Estimate
    change: Estimate

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def score_changes(pairs: Sequence[SwitchedPairs], searches: Sequence[SwitchedSearch]) -> Iterator[ScoreChange]:
    """Spearman's ρ of scored pairs and nDCG@10 of judged queries, both on the same resamples."""
    for each in pairs:
        old, new = (PairScorer(each.pairs).spearman(scores) for scores in each.scores)
        name = f"the {len(each.pairs.scores):,} pairs of {each.pairs.name}"
        yield ScoreChange(name, "Spearman's ρ", old.estimate(), new.estimate(), new.minus(old).estimate())
    for search in searches:
        if search.is_judged:
            old, new = (CollectionScorer(search.collection).ndcg(scores) for scores in search.scores)
            yield ScoreChange(search.name, "nDCG@10", old.estimate(), new.estimate(), new.minus(old).estimate())


RESAMPLES, SEED = 1_000, 0


def mean_of(values: np.ndarray, units: np.ndarray) -> Estimate:
    """Mean of (n,) values; percentile bootstrap over units."""
    return ratio_of(values, np.ones(len(values)), units)


def in_two_roles(found: Estimate) -> Estimate:
    """The interval of a mean over texts that ask for their neighbours among each other, √2 times as wide.

    A text counts as one that asks, and as one that is found; resampling those who ask knows the first half of the
    variance only. Measured, not derived: draws of texts differ by 1.2 to 1.5 times what resampling says, both made up
    (tests/switch/test_switch_roles.py) and real (benchmarks/README.md).
    """
    if found.value is None or found.low is None or found.high is None:
        return found
    low, high = (found.value + math.sqrt(2) * (end - found.value) for end in (found.low, found.high))
    return Estimate(found.value, max(low, -1.0), min(high, max(1.0, found.value)))


def ratio_of(above: np.ndarray, below: np.ndarray, units: np.ndarray) -> Estimate:
    """Σ above / Σ below of (n,) values of the same items; percentile bootstrap over units.

    Where all resamples agree, as with a ratio of exactly 1, the interval is that of a share that was met in every
    unit: no certainty follows from few of them. No interval below ten units.
    """
    total = float(below.sum())
    if not len(above) or total <= 0:
        return Estimate(None)
    value = float(above.sum()) / total
    weights = unit_weights(units, RESAMPLES, SEED)
    if not len(weights):
        return Estimate(value)
    sums = weights @ below
    resampled = np.divide(weights @ above, sums, out=np.full(len(sums), np.nan), where=sums > 0)
    found = Estimate.holding(value, percentile_intervals(resampled[:, None])[0])
    if found.low is None and np.ptp(resampled[np.isfinite(resampled)]) <= 1e-9 and 0 <= value <= 1 + 1e-9:
        trials = len(np.unique(units))
        return Estimate.reaching(value, exact_share(round(min(value, 1.0) * trials), trials))
    return found


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


QUERIES, DOCUMENTS, PAIRS = "queries of ", "documents of ", "pairs of "
USES = {QUERIES: "queries", DOCUMENTS: "documents", PAIRS: "texts of pairs"}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class SameText:
    """Cosines of a text's two vectors, over all texts.

    Attributes:
        quantiles: at ``QUANTILES``.
        median: its interval is exact for any distribution of independent texts.
        strangers: median cosine of OLD's vector of a text with NEW's vector of the next one.
        worst: the largest 1 − cosine.
        is_same: the same vectors within parity's limits.
        is_rounded: the same within what half precision rounds.
        moved: where documents have the same vectors, which texts have not: queries, texts of pairs; empty otherwise.
    """

    texts: int
    quantiles: tuple[float, ...]
    median: Estimate
    strangers: float
    worst: float
    worst_text: str
    is_same: bool
    is_rounded: bool
    moved: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_same_texts(pairs: Sequence[SwitchedPairs], searches: Sequence[SwitchedSearch]) -> SameText | None:
    """None if the two have other dimensions."""
    kinds = [kind for kind in _kinds(pairs, searches) if kind is not None]
    if not kinds:
        return None
    distances = np.concatenate([kind.distances for kind, _ in kinds])
    # A vector of zeros has no direction; NaN was refused before.
    cosines = 1 - distances[np.isfinite(distances)]
    far = max((kind for kind, _ in kinds), key=lambda kind: np.nan_to_num(kind.worst))
    in_order = np.sort(cosines)
    low, high = quantile_ranks(len(in_order), 0.5)
    median = float(np.median(in_order))
    differences = [kind for kind, _ in kinds]
    is_same = not any(is_apart(kind) for kind in differences) and len(cosines) == len(distances)
    is_comparable = len(cosines) == len(distances) and bool(searches)
    moved = {name: any(is_apart(kind) for kind in differences if kind.kind.startswith(name)) for name in USES}
    return SameText(
        len(distances),
        tuple(float(np.quantile(in_order, share)) for share in QUANTILES),
        Estimate(median) if high is None else Estimate(median, float(in_order[low - 1]), float(in_order[high - 1])),
        float(np.median(np.concatenate([strangers for _, strangers in kinds]))),
        far.worst,
        far.worst_text,
        is_same,
        not is_same and len(cosines) == len(distances) and is_rounding(differences),
        tuple(USES[name] for name in (QUERIES, PAIRS) if moved[name]) if is_comparable and not moved[DOCUMENTS] else (),
    )


def _kinds(
    pairs: Sequence[SwitchedPairs], searches: Sequence[SwitchedSearch]
) -> list[tuple[KindDifference, np.ndarray] | None]:
    """Distinct texts of each use, as they are prompted there."""
    found = []
    for each in pairs:
        texts = [*each.pairs.firsts, *each.pairs.seconds]
        both = OldAndNew(
            np.concatenate([each.firsts.old, each.seconds.old]), np.concatenate([each.firsts.new, each.seconds.new])
        )
        found.append(_kind(f"{PAIRS}{each.pairs.name}", texts, both))
    for search in searches:
        found.append(_kind(f"{DOCUMENTS}{search.collection.name}", search.collection.documents, search.known))
        if not search.asks_itself:
            found.append(_kind(f"{QUERIES}{search.collection.name}", search.collection.queries, search.asked))
        elif search.as_queries is not None:
            # Documents ask for their neighbours as documents; what is done to queries shows in these.
            first = search.collection.documents[: len(search.as_queries.old)]
            found.append(_kind(f"{QUERIES}{search.collection.name}", first, search.as_queries))
    return found


def _kind(name: str, texts: Sequence[str], both: OldAndNew) -> tuple[KindDifference, np.ndarray] | None:
    """The difference, and cosines of each text's OLD with the next one's NEW; None for other dimensions."""
    if not both.has_one_dimension:
        return None
    places = np.array(sorted({text: place for place, text in enumerate(texts)}.values()))
    old, new = both.old[places], both.new[places]
    difference = compare_kind(name, [texts[place] for place in places], old, new, {})
    return difference, np.einsum("nd,nd->n", unit_rows(old), np.roll(unit_rows(new), -1, axis=0))
