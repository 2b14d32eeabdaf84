"""Tasks on labelled documents: classification and clustering.

Classification is by nearest neighbours and logistic regression, cross-validated within each half; clustering is the
V-measure of k-means, averaged over several initialisations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from embaudit.corpora.downstream import Items, Vectors, in_report, unit_rows
from embaudit.corpora.downstream.material import LabelledTexts
from embaudit.statistics import MIN_UNITS, Interval, mean_interval, percentile_intervals

Method = Literal["classification_knn", "classification_logistic"]
MAX_STEPS = 1_000


class Classification:
    """Accuracy; an outcome is 1 if a held-out document's class is predicted correctly, otherwise 0.

    Folds stay within a half and are the same for all vectors, so outcomes are paired by document.

    Args:
        lengths: (n,) tokens of each text.
        folds: number of folds of the stratified cross-validation within a half.
        neighbours: k of the nearest neighbours, by cosine, with equal votes.
    """

    def __init__(
        self, method: Method, labelled: LabelledTexts, lengths: np.ndarray, *, folds: int, neighbours: int, seed: int
    ) -> None:
        self.name = method
        self.labels = np.array(labelled.labels)
        self.folds, self.neighbours, self.seed = folds, neighbours, seed
        units = np.arange(len(labelled.texts))
        report = in_report(labelled.texts, units, seed, labelled.labels)
        self.items = Items(np.asarray(lengths), units, report)

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        return {"text": ~self.items.is_report}

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        from sklearn.model_selection import StratifiedKFold

        rows = unit_rows(vectors["text"])
        right = np.zeros(len(rows))
        for half in (self.items.is_report, ~self.items.is_report):
            places = np.flatnonzero(half)
            folds = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
            for learn, test in folds.split(rows[places], self.labels[places]):
                model = self._classifier(len(learn)).fit(rows[places[learn]], self.labels[places[learn]])
                right[places[test]] = model.predict(rows[places[test]]) == self.labels[places[test]]
        return right

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return float(outcomes[chosen].mean())

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        return mean_interval((after - before)[chosen], self.items.units[chosen], resamples, seed)

    def _classifier(self, learned_from: int) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.neighbors import KNeighborsClassifier

        if self.name == "classification_knn":
            return KNeighborsClassifier(min(self.neighbours, learned_from), metric="cosine")
        return LogisticRegression(max_iter=MAX_STEPS)


class Clustering:
    """V-measure (Rosenberg and Hirschberg 2007) with as many clusters as classes, averaged over initialisations.

    An outcome is a text's cluster in each run, (n, starts).

    Args:
        lengths: (n,) tokens of each text.
        starts: number of k-means runs, each with its own seed.
        in_halves: cluster each half separately, so that choices made on one do not leak into the other; otherwise
            cluster and report all texts together.
    """

    name = "clustering"

    def __init__(
        self, labelled: LabelledTexts, lengths: np.ndarray, *, starts: int, seed: int, in_halves: bool = False
    ) -> None:
        self.labels = np.unique(np.array(labelled.labels), return_inverse=True)[1]
        self.starts, self.seed = starts, seed
        units = np.arange(len(labelled.texts))
        everything = np.ones(len(units), dtype=bool)
        report = in_report(labelled.texts, units, seed, labelled.labels) if in_halves else everything
        self.items = Items(np.asarray(lengths), units, report)

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        return {"text": ~self.items.is_report}

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        from sklearn.cluster import KMeans

        rows = unit_rows(vectors["text"])
        clusters = np.zeros((len(rows), self.starts), dtype=np.int64)
        for half in (self.items.is_report, ~self.items.is_report):
            if not half.any():
                continue
            classes = len(np.unique(self.labels[half]))
            for start in range(self.starts):
                model = KMeans(classes, n_init=1, random_state=self.seed + start)
                clusters[half, start] = model.fit(rows[half]).labels_
        return clusters

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        """None if all texts have the same class."""
        labels = self.labels[chosen]
        return None if len(np.unique(labels)) < 2 else float(self._by_start(labels, outcomes[chosen]).mean())

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        """Resamples both texts and k-means runs."""
        labels = self.labels[chosen]
        if len(labels) < MIN_UNITS or len(np.unique(labels)) < 2:
            return None
        generator = np.random.default_rng(seed)
        texts, starts = (
            generator.multinomial(count, np.full(count, 1 / count), size=resamples)
            for count in (len(labels), self.starts)
        )
        # (resamples, starts), paired by text and run.
        gained = self._by_start(labels, after[chosen], texts) - self._by_start(labels, before[chosen], texts)
        low, high = percentile_intervals(np.einsum("bs,bs->b", gained, starts)[:, None] / self.starts)[0]
        return None if low is None or high is None else (low, high)

    def _by_start(self, labels: np.ndarray, clusters: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """(B, starts) V-measures; without weights, every text counts once."""
        weights = np.ones((1, len(labels)), dtype=np.int64) if weights is None else weights
        return np.stack([v_measures(labels, clusters[:, start], weights) for start in range(self.starts)], axis=1)


def v_measures(labels: np.ndarray, clusters: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """V = 2 I(C; K) / (H(C) + H(K)) for each row of weights, (B,); classes C, clusters K; 1 if there is one of each.

    Args:
        labels: (n,) class of each text.
        clusters: (n,) cluster of each text.
        weights: (B, n) multiplicity of each text.
    """
    cells = np.unique(np.stack([labels, clusters]), axis=1, return_inverse=True)
    (of_class, of_cluster), cell = cells[0], cells[1].ravel()
    joint = weights @ _members(cell)
    total = joint.sum(axis=1, keepdims=True)
    of_both, classes, clustered = (
        _entropy(shares)
        for shares in (joint / total, *(joint @ _members(one) / total for one in (of_class, of_cluster)))
    )
    apart = classes + clustered
    shared = np.maximum(apart - of_both, 0)
    return np.divide(2 * shared, apart, out=np.ones_like(apart), where=apart > 1e-12)


def _members(groups: np.ndarray) -> np.ndarray:
    """(n, G) one-hot group membership."""
    return (groups[:, None] == np.unique(groups)).astype(np.float64)


def _entropy(shares: np.ndarray) -> np.ndarray:
    """−Σ p ln p of each row."""
    return -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
