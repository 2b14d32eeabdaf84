"""Draws from a population whose values are known, and what they say of an interval.

A draw of n of N items without replacement is what an audit reads. With replacement it would contain items twice, which
makes hubs and pairs of cosine 1 that no audit sees. But without it draws differ by less than samples of the endless
supply of texts that intervals are about, by √(1 − n/N) for anything like a mean. So deviations are divided by this; n
is at most N/10, which keeps it above .94.

Ranks, shares and hubness depend on n, so the value to hold is the mean of the draws, not the value of all N items;
except where a population knows better (``truths``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from embaudit.statistics import NORMAL

# A value and the ends of its interval; None if undefined.
Ended = tuple[float | None, float | None, float | None]
SHARE = 10


@dataclass(frozen=True)
class Population:
    """Items that draws are made of, and the figures of a draw.

    Attributes:
        size: n, the items of a draw.
        figures: by name, from the (n,) ascending places of the drawn items. A name ends with what it is one of many of,
            if anything, in brackets: ``r [layer 3]``.
        truths: what an interval should hold, of figures that do not depend on n; of others, the mean of the draws.
    """

    name: str
    items: int
    size: int
    figures: Callable[[np.ndarray], Mapping[str, Ended]]
    truths: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Coverage:
    """One figure over the draws.

    Attributes:
        draws: draws in which it has an interval, of all ``made``.
        held: share of these intervals that hold the truth, or the mean of the draws.
        ratio: mean standard error, a quarter of the interval's width by 0.98, over the spread of the values.
    """

    figure: str
    made: int
    draws: int
    held: float
    ratio: float


def coverage(population: Population, draws: int, seed: int = 0) -> list[Coverage]:
    """Every figure that has an interval in half of the draws or more, and that differs between them."""
    found: dict[str, list[Ended]] = {}
    for places in _places(population, draws, seed):
        for name, ended in population.figures(places).items():
            found.setdefault(name, []).append(ended)
    finite = float(np.sqrt(1 - population.size / population.items))
    rows = [
        _of_figure(f"{population.name}: {name}", draws, ended, finite, population.truths.get(name))
        for name, ended in found.items()
    ]
    return [row for row in rows if row is not None]


def _places(population: Population, draws: int, seed: int) -> Iterator[np.ndarray]:
    for draw in range(draws):
        generator = np.random.default_rng([seed, draw])
        yield np.sort(generator.choice(population.items, population.size, replace=False))


def _of_figure(name: str, made: int, found: list[Ended], finite: float, truth: float | None) -> Coverage | None:
    complete = [ended for ended in found if None not in ended]
    if len(complete) < made / 2:
        return None
    values, low, high = np.array(complete, dtype=np.float64).T
    spread = values.std(ddof=1) / finite
    if spread <= 1e-12 * np.abs(values).max():
        return None
    # Where it would lie if the draws deviated from it as samples of an endless supply do.
    target = values - (values - (values.mean() if truth is None else truth)) / finite
    held = ((low <= target) & (target <= high)).mean()
    return Coverage(name, made, len(complete), float(held), float((high - low).mean() / 2 / NORMAL / spread))
