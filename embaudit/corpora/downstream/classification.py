"""Classification of documents by nearest neighbours and logistic regression, cross-validated within each half."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from embaudit.corpora.downstream.material import LabelledTexts
from embaudit.corpora.downstream.split import in_report
from embaudit.corpora.downstream.task import Items, Vectors, unit_rows
from embaudit.statistics.intervals import Interval, mean_interval

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
