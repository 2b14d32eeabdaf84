"""Wider settings of a query, from the least to the widest: the first that gives what the present ones do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from embaudit.questions.search.queries import Queries
from embaudit.questions.search.reach import WIDEST, widest_of
from embaudit.questions.search.recall import Results, without_own
from embaudit.stores.search import SearchParameter, Settings, StoreSearch, Where

# Queries with too few results that are asked again.
AGAIN = 20


@dataclass(frozen=True)
class MoreResults:
    """What wider settings do for queries that get too few results.

    Attributes:
        shown: the first of them that gives the most queries all; empty if none gives any of them more.
        whole: of ``asked`` queries, how many get all of them then.
    """

    shown: str
    whole: int
    asked: int


def wider_settings(search: StoreSearch, present: Settings) -> Iterator[tuple[dict[str, int], str]]:
    """Settings with how they are called, the least first: every dial twice as far before any is four times.

    Settings by which a search looks at every row, and all dials at their widest, come last.
    """
    steps: list[tuple[int, dict[str, int], str]] = []
    for dial in search.dials:
        here = present.get(dial.name, dial.present)
        values = SearchParameter(dial.name, here, max(min(dial.most, WIDEST), here)).wider()
        steps += [(step, {**present, dial.name: value}, f"{dial.name} {value:,}") for step, value in enumerate(values)]
    yield from ((settings, said) for _, settings, said in sorted(steps, key=lambda one: one[0]))
    widest = {dial.name: max(min(dial.most, WIDEST), present.get(dial.name, 0)) for dial in search.dials}
    for most in ({**present, **widest}, widest_of(search, present)):
        changed = {name: value for name, value in most.items() if present.get(name) != value}
        if changed and not any(settings == most for _, settings, _ in steps):
            yield most, ", ".join(f"{name} {value:,}" for name, value in changed.items())


def more_results(
    search: StoreSearch, queries: Queries, outcome: Results, present: Settings, where: Where
) -> MoreResults | None:
    """Asks again for those that got fewer than there are; None if none did."""
    short = [
        place
        for place, (given, ids) in enumerate(zip(outcome.given, outcome.truth.ids, strict=True))
        if len(given) < len(ids)
    ][:AGAIN]
    if not short:
        return None
    best, gives = MoreResults("", 0, len(short)), sum(len(outcome.given[place]) for place in short)
    for settings, said in wider_settings(search, present):
        whole = given = 0
        for place in short:
            own = queries.ids[place]
            found = search.find(queries.vectors[place], outcome.truth.k + (own is not None), settings, where)
            count = len(without_own(found.ids, own)[: outcome.truth.k])
            given += count
            whole += count >= len(outcome.truth.ids[place])
        if given > gives:
            best, gives = MoreResults(said, whole, len(short)), given
        if whole == len(short):
            break
    return best
