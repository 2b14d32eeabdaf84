"""Whether texts of one class fall into one cluster: V-measure of k-means, over several starts."""

from __future__ import annotations

import numpy as np

from embaudit.downstream.material import LabelledTexts
from embaudit.downstream.task import Items, Vectors, unit_rows


class Clustering:
    """V-measure (Rosenberg and Hirschberg 2007) of as many clusters as there are classes, mean over starts.

    An outcome is the cluster of a text in each start.

    Args:
        lengths: (n,) tokens of each text.
        starts: of k-means, each with a seed of its own.
    """

    def __init__(self, labelled: LabelledTexts, lengths: np.ndarray, *, starts: int, seed: int) -> None:
        self.labels = np.unique(np.array(labelled.labels), return_inverse=True)[1]
        self.starts, self.seed = starts, seed
        units = np.arange(len(labelled.texts))
        self.items = Items(np.asarray(lengths), units, np.ones(len(units), dtype=bool))

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        from sklearn.cluster import KMeans

        rows = unit_rows(vectors["text"])
        classes = int(self.labels.max()) + 1
        found = [
            KMeans(classes, n_init=1, random_state=self.seed + start).fit(rows).labels_ for start in range(self.starts)
        ]
        return np.stack(found, axis=1)

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        from sklearn.metrics import v_measure_score

        labels, clusters = self.labels[chosen], outcomes[chosen]
        return float(np.mean([v_measure_score(labels, clusters[:, start]) for start in range(self.starts)]))
