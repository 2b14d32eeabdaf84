"""Searches a τ per layer or per head on the choose half, and evaluates it on the report half.

The paper divides all logits by one τ (arXiv 2410.24200, §5). To find out whether parts of a model prefer different
values, coordinate descent starts from the best single τ: for each part, the next lower and higher τ of the grid are
tried, and kept if the score on the choose half improves. Each trial encodes all texts, so the descent is greedy and
short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np

from embaudit.corpora.downstream.task import Task
from embaudit.measures.tempscale import Part, SearchedTask
from embaudit.measures.tempscale import Task as TaskName
from embaudit.words.estimate import Estimate

Taus = tuple[float, ...]
MAX_SWEEPS = 2


class Found(NamedTuple):
    """Result of a descent, with the number of combinations tried."""

    taus: Taus
    trials: int


def descend(start: Taus, grid: Sequence[float], score: Callable[[Taus], float | None]) -> Found:
    """Coordinate descent on a grid, from ``start``; an undefined score is never better.

    Args:
        start: (parts,) values from the grid.
        grid: τ in order.
        score: higher is better.
    """
    asked: dict[Taus, float] = {}

    def worth(taus: Taus) -> float:
        if taus not in asked:
            found = score(taus)
            asked[taus] = float("-inf") if found is None else found
        return asked[taus]

    best = start
    for _ in range(MAX_SWEEPS):
        before = best
        for part in range(len(start)):
            at = grid.index(best[part])
            near = [grid[place] for place in (at - 1, at + 1) if 0 <= place < len(grid)]
            # Ties keep the current value.
            best = max([best, *((*best[:part], tau, *best[part + 1 :]) for tau in near)], key=worth)
        if best == before:
            break
    return Found(best, len(asked))


def report(
    task: Task,
    part: Part,
    tau: float,
    found: Found,
    outcomes: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    resamples: int,
    seed: int,
) -> SearchedTask:
    """Evaluate the result on the held-out half.

    Args:
        tau: the single τ from which the search started.
        outcomes: at τ = 1, at ``tau`` and at ``found.taus``.
    """
    chosen = task.items.is_report
    items = int(chosen.sum())
    before, single, after = (task.score(one, chosen) if items > 1 else None for one in outcomes)

    difference, beyond = (None if after is None or one is None else after - one for one in (before, single))

    def estimate(value: float | None, first: np.ndarray) -> Estimate:
        ends = None if value is None else task.interval(first, outcomes[2], chosen, resamples, seed)
        return Estimate.holding(value, ends)

    gain, excess = estimate(difference, outcomes[0]), estimate(beyond, outcomes[1])
    return SearchedTask(
        task=cast(TaskName, task.name),
        part=part,
        tau=tau,
        taus=",".join(f"{one:g}" for one in found.taus),
        trials=found.trials,
        recommendation="yes" if gain.is_above_zero and excess.is_above_zero else "no",
        items=items,
        units=len(np.unique(task.items.units[chosen])),
        score_before=before,
        score_single=single,
        score_after=after,
        difference=difference,
        low=gain.low,
        high=gain.high,
        **excess.columns("beyond"),
    )
