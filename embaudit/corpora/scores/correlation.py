"""Spearman's rho between audit measures and downstream scores of checkpoints (arXiv 2604.27398)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import scipy

# Up to here all n! pairings are enumerated (362 880); above, Student's t is close, and is what papers report.
EXACT_UP_TO = 9
MIN_PAIRS = 3
EXACT, STUDENT = "exact", "t"
AVERAGE = "average"


class ScoredMeasure(NamedTuple):
    """One checkpoint's score on a task together with a measure: a row of the view ``score_beside_measure``."""

    checkpoint_id: str
    task: str
    score: float
    measure: str
    corpus: str
    value: float


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho over n checkpoints.

    Attributes:
        rho: None with fewer than three checkpoints, or if one side is constant.
        p: two-sided; None if rho is.
        method: how p was computed: ``exact`` (all n! pairings) or ``t`` (Student's t with n - 2 degrees of freedom).
    """

    n: int
    rho: float | None
    p: float | None
    method: str | None


@dataclass(frozen=True)
class TaskCorrelation:
    """The correlation of one measure on one corpus with one task, or with the average over several."""

    measure: str
    corpus: str
    task: str
    tasks: int
    correlation: Correlation


def correlate(rows: Sequence[ScoredMeasure], *, only_average: bool = False) -> list[TaskCorrelation]:
    """Rho by measure, corpus and task, and for the average over the tasks that all checkpoints have.

    Args:
        only_average: over all tasks of ``rows``; checkpoints that lack one are left out.
    """
    found = []
    for measure, corpus in sorted({(row.measure, row.corpus) for row in rows}):
        mine = [row for row in rows if (row.measure, row.corpus) == (measure, corpus)]
        values = {row.checkpoint_id: row.value for row in mine}
        scores = {(row.checkpoint_id, row.task): row.score for row in mine}
        tasks = sorted({row.task for row in mine})
        for task in () if only_average else tasks:
            found.append(_one(measure, corpus, task, 1, values, {c: s for (c, t), s in scores.items() if t == task}))
        averages, over = average_over_tasks(scores, tasks if only_average else ())
        if only_average or len(over) > 1:
            name = f"{AVERAGE} of {len(over)} task{'s' * (len(over) != 1)}"
            found.append(_one(measure, corpus, name, len(over), values, averages))
    return found


def spearman(values: Sequence[float], scores: Sequence[float]) -> Correlation:
    """Spearman's rho: Pearson's correlation of average ranks, with a two-sided p.

    Args:
        values: (n,) the measure, one per checkpoint.
        scores: (n,) the downstream score in the same order.
    """
    n = len(values)
    if n < MIN_PAIRS or len(set(values)) < 2 or len(set(scores)) < 2:
        return Correlation(n, None, None, None)
    found = scipy.stats.spearmanr(values, scores)
    if n > EXACT_UP_TO:
        return Correlation(n, float(found.statistic), float(found.pvalue), STUDENT)
    return Correlation(
        n, float(found.statistic), _exact_p(scipy.stats.rankdata(values), scipy.stats.rankdata(scores)), EXACT
    )


def average_over_tasks(
    scores: Mapping[tuple[str, str], float], tasks: Sequence[str] = ()
) -> tuple[dict[str, float], list[str]]:
    """Each checkpoint's mean score over the same tasks: averages over different tasks are not comparable.

    Args:
        scores: by checkpoint and task.
        tasks: to average over; checkpoints that lack one are left out. By default those that all checkpoints have.

    Returns:
        The averages by checkpoint, and the tasks.
    """
    by_checkpoint: dict[str, dict[str, float]] = {}
    for (checkpoint, task), score in scores.items():
        by_checkpoint.setdefault(checkpoint, {})[task] = score
    over = set(tasks) or set.intersection(*(set(found) for found in by_checkpoint.values()))
    complete = {one: found for one, found in by_checkpoint.items() if over and over <= set(found)}
    return {one: sum(found[task] for task in over) / len(over) for one, found in complete.items()}, sorted(over)


def _one(
    measure: str, corpus: str, task: str, tasks: int, values: Mapping[str, float], scores: Mapping[str, float]
) -> TaskCorrelation:
    places = sorted(scores)
    both = spearman([values[one] for one in places], [scores[one] for one in places])
    return TaskCorrelation(measure, corpus, task, tasks, both)


def _exact_p(value_ranks: Any, score_ranks: Any) -> float:
    """Twice the smaller tail over all pairings; the correlation is monotonic in the sum of the products of ranks."""
    products = value_ranks[_pairings(len(value_ranks))] @ score_ranks
    seen = float(value_ranks @ score_ranks)
    # Ranks are multiples of 1/2 and products of 1/4, so the comparison is exact.
    tail = min(float(np.mean(products >= seen)), float(np.mean(products <= seen)))
    return min(1.0, 2 * tail)


@cache
def _pairings(n: int) -> Any:
    """(n!, n) int8: every order of n things."""
    return np.array(list(permutations(range(n))), dtype=np.int8)
