"""Rows that cannot be found: each of a sample is asked for by its own vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from embaudit.questions.search.queries import Queries
from embaudit.statistics.intervals import exact_share
from embaudit.stores.search import Settings, StoreSearch, Where

# Results among which a row is looked for.
AMONG = 10
# A graph that is searched so widely finds whatever its links lead to; more takes minutes a row.
WIDEST = 4_096
# Of the rows that are not found, how many are asked for again at the widest settings.
AGAIN = 300


@dataclass(frozen=True)
class Reached:
    """Rows of a sample that were asked for by themselves.

    Attributes:
        asked: how many.
        missed: ids of those that are not among the first ten at the present settings.
        unreachable: of these, the ones that are not even at the widest.
        again: how many of those missed were asked for again.
        widest: the settings of that; empty if a query can set nothing.
    """

    asked: int
    missed: tuple[object, ...]
    unreachable: tuple[object, ...]
    again: int
    widest: dict[str, int]

    @property
    def share(self) -> tuple[float, float, float]:
        """Of the rows, those not found at the present settings, with the exact interval."""
        return len(self.missed) / self.asked, *exact_share(len(self.missed), self.asked)

    @property
    def lost_share(self) -> tuple[float, float, float]:
        """Of the rows, those that no setting finds; of those missed, as many as were asked for again are known."""
        scale = len(self.missed) / self.again if self.again else 0.0
        lost = round(len(self.unreachable) * scale)
        return lost / self.asked, *exact_share(lost, self.asked)


def reached(
    search: StoreSearch, rows: Queries, settings: Settings, where: Where, progress: Callable[[int], None]
) -> Reached:
    """Ask for each of these rows by its own vector; none of them may have ten rows that are nearer to it."""
    missed = []
    for place, (vector, own) in enumerate(zip(rows.vectors, rows.ids, strict=True)):
        if not _is_found(search, vector, own, settings, where):
            missed.append(place)
        progress(1)
    widest = widest_of(search, settings)
    again = missed[:AGAIN] if widest != dict(settings) else []
    lost = [place for place in again if not _is_found(search, rows.vectors[place], rows.ids[place], widest, where)]
    if not again:
        lost, again = missed, missed
    named = [tuple(rows.ids[place] for place in places) for places in (missed, lost)]
    return Reached(len(rows), named[0], named[1], len(again), widest if widest != dict(settings) else {})


def widest_of(search: StoreSearch, settings: Settings) -> dict[str, int]:
    """Settings at which a search looks at as much as it can, within reason."""
    if search.exact is not None:
        return {**settings, **search.exact}
    wide = {dial.name: max(min(dial.most, WIDEST), settings.get(dial.name, 0)) for dial in search.dials}
    return {**settings, **wide}


def _is_found(search: StoreSearch, vector: np.ndarray, own: object, settings: Settings, where: Where) -> bool:
    return str(own) in map(str, search.find(vector, AMONG, settings, where).ids)
