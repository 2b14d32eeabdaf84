"""Downstream tasks: retrieval, classification, clustering, semantic similarity. Nothing here runs a model.

A task turns vectors into an outcome per item, and outcomes into a score over a set of items: here is what all of them
have in common. ``material`` samples the texts of a corpus by content.

Scores of one task under several arms are on the same resamples of its units, so that differences are paired. A unit is
a group of queries that share a relevant document, a group of pairs that share a sentence, or a text. An interval is the
estimate ± 1.96 standard deviations over the resamples (Efron and Tibshirani 1993, §13.3).

A task's items are split into two halves by content: τ is chosen on one and reported on the other. An item's half
depends on the seed and on the texts, never on the order of a file; the items of a unit go to the same half.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from embaudit.corpora.draw import content_order
from embaudit.statistics import MIN_UNITS, NORMAL, resample_clusters
from embaudit.words.estimate import Estimate

Vectors = Mapping[str, np.ndarray]
Scores = dict[str, np.ndarray]


@dataclass(frozen=True)
class Items:
    """The items that a task is scored on: documents, queries or pairs.

    Attributes:
        lengths: (n,) tokens of the item's document, before truncation.
        units: (n,) items in one unit share a text, and are split and resampled together.
        is_report: (n,) whether the item is in the report half.
    """

    lengths: np.ndarray
    units: np.ndarray
    is_report: np.ndarray


class Scored(Protocol):
    """A task with a score."""

    @property
    def items(self) -> Items: ...

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        """Outcome of each item, (n, …), from the (texts, d) vectors of each side."""
        ...

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        """The task's main score over some items, given as mask or indices; None if undefined."""
        ...


class Task(Scored, Protocol):
    """A task on which arms are fitted and compared."""

    @property
    def name(self) -> str: ...

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        """Masks of the texts in the choose half, by side: the texts that whitening and centring are fitted on."""
        ...

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> tuple[float, float] | None:
        """A paired 95 % interval of the difference between two scores over the same items."""
        ...


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, (…, d) float64; zero vectors stay zero."""
    rows = np.asarray(vectors, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True).clip(min=1e-30)


class PairedScores:
    """Scores of n arms.

    Args:
        outcomes: the task's outcomes, one array per arm.
    """

    def __init__(self, task: Scored, outcomes: Sequence[np.ndarray], resamples: int, seed: int) -> None:
        items = np.arange(len(task.items.units))
        self._scores = _scores(task, outcomes, items[None])[0]
        _, clusters = np.unique(task.items.units, return_inverse=True)
        self._resampled = np.empty((0, len(outcomes)))
        if clusters.max(initial=-1) + 1 >= MIN_UNITS:
            times = resample_clusters(clusters, resamples, seed)
            self._resampled = np.concatenate([_scores(task, outcomes, np.repeat(items, row)[None]) for row in times])

    def score(self, arms: Sequence[int]) -> float | None:
        """The mean of the arms' scores; None if one is undefined."""
        return _defined(self._scores[list(arms)].mean())

    def difference(self, of: Sequence[int], to: Sequence[int]) -> Estimate:
        """Mean score of the arms ``of`` − of ``to``; no interval below ten units, or if all resamples agree."""
        value = self._scores[list(of)].mean() - self._scores[list(to)].mean()
        resampled = self._resampled[:, list(of)].mean(axis=1) - self._resampled[:, list(to)].mean(axis=1)
        defined = resampled[np.isfinite(resampled)]
        half = NORMAL * defined.std(ddof=1) if len(defined) > 1 else 0.0
        if not np.isfinite(value) or half == 0:
            return Estimate(_defined(value))
        return Estimate.around(float(value), float(half))


def _scores(task: Scored, outcomes: Sequence[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """(B, arms) scores over (B, n) chosen items; NaN where undefined."""
    return np.array([[np.nan if (s := task.score(one, row)) is None else s for one in outcomes] for row in chosen])


def _defined(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def units_of(count: int, shared: Iterable[tuple[int, int]]) -> np.ndarray:
    """Unit of each item: the connected components of (item, item) links, as (count,) int64."""
    links = list(shared)
    rows = np.array([first for first, _ in links], dtype=np.int64)
    columns = np.array([second for _, second in links], dtype=np.int64)
    graph = scipy.sparse.coo_array((np.ones(len(links), dtype=np.int8), (rows, columns)), shape=(count, count))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)


def in_report(texts: Sequence[str], units: np.ndarray, seed: int, strata: Sequence[str] | None = None) -> np.ndarray:
    """True for items in the report half: units are assigned to the smaller half, largest units first.

    Args:
        texts: content of each item.
        units: (n,) from ``units_of``.
        strata: split each stratum separately (the classes of a classification); units must not cross strata.
    """
    order = {place: rank for rank, place in enumerate(content_order(texts, seed))}
    by_stratum: dict[str, dict[int, list[int]]] = {}
    for place, unit in enumerate(units):
        stratum = by_stratum.setdefault(strata[place] if strata is not None else "", {})
        stratum.setdefault(int(unit), []).append(place)
    report = np.zeros(len(texts), dtype=bool)
    for stratum in by_stratum.values():
        sizes = [0, 0]
        for places in sorted(stratum.values(), key=lambda one: (-len(one), min(order[place] for place in one))):
            half = int(sizes[1] < sizes[0])
            sizes[half] += len(places)
            report[places] = half == 1
    return report
