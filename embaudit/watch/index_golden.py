"""Golden queries of a watched index: each night they are asked as the application asks, and what is lost is said."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from embaudit.corpora.golden import read_golden
from embaudit.embedders.function import EmbeddingFunction
from embaudit.statistics.intervals import exact_share
from embaudit.stores.opened import open_store
from embaudit.watch.watch_list import IndexEntry
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import cut, quoted

GOLDEN = "golden"
# Queries that a sentence names.
NAMED = 3


class LostQuery(BaseModel):
    """A golden query that was found on an earlier night.

    Attributes:
        key: of the look that lost it.
        said: where, and why.
    """

    query: str
    key: str
    night: datetime
    said: str


class GoldenNight(BaseModel):
    """What is known of golden queries from one night to the next.

    Attributes:
        known: those that the first look did not find, or that somebody accepted: they are red once they were found.
        lost: the others that are not found.
    """

    known: list[str] = []
    lost: list[LostQuery] = []

    @property
    def problems(self) -> list[dict[str, str]]:
        """What is open, by the look that found it first."""
        found = []
        for key in dict.fromkeys(one.key for one in self.lost):
            own = [one for one in self.lost if one.key == key]
            found.append({"key": key, "name": GOLDEN, "night": f"{own[0].night:%Y-%m-%d}", "said": _said(own)})
        return found


def ask_golden(
    entry: IndexEntry,
    function: EmbeddingFunction,
    before: GoldenNight | None,
    accepted: Collection[tuple[str, str]],
    key: str,
    now: datetime,
) -> tuple[GoldenNight, dict[str, Any]]:
    """Walk the golden queries of an entry.

    Args:
        before: of the last look; None if there was none with golden queries.
        accepted: (key of a look, name) of what somebody accepted.

    Returns:
        What the next night is told, and the columns of ``index_check``.

    Raises:
        EmbauditError: if the file or the store cannot be read.
    """
    from embaudit.questions.why.report import look_into
    from embaudit.questions.why.verdict import ShownResults, heading_of

    assert entry.golden is not None
    asked = entry.asked_rows
    store = open_store(entry.store, replace(asked, where=(), dimension=function.dimension))
    filtered = open_store(entry.store, replace(asked, dimension=function.dimension)) if asked.where else None
    report = look_into(store, function, read_golden(entry.golden), filtered=filtered, cut_off=ShownResults(entry.k))
    lost = {case.query: one for case, one in report.cases if one.lost != "found"}
    if before is None:
        night = GoldenNight(known=list(lost))
    else:
        was = {one.query: one for one in before.lost}
        known = {*before.known, *(one.query for one in before.lost if (one.key, GOLDEN) in accepted)} & set(lost)
        night = GoldenNight(
            known=sorted(known),
            lost=[
                was.get(query)
                or LostQuery(query=query, key=key, night=now, said=f"{heading_of(one.lost)}: {one.sentence}")
                for query, one in lost.items()
                if query not in known
            ],
        )
    queries, found = len(report.lost), report.counts["found"]
    told = [
        {"query": case.query, "expected": case.expected, "lost": one.lost, "said": one.sentence, "mend": one.mend}
        for case, one in report.cases
        if one.lost != "found"
    ]
    return night, {
        "golden_queries": queries,
        "golden_found": found,
        **Estimate(found / queries, *exact_share(found, queries)).columns("golden_share"),
        "golden_lost": told,
    }


def said_of_golden(night: GoldenNight, facts: dict[str, Any]) -> str:
    """One sentence for the morning."""
    found, queries = facts["golden_found"], facts["golden_queries"]
    known = f"; {len(night.known):,} lost before" if night.known else ""
    return f"Golden queries: {found:,} of {queries:,} are found{known}."


def _said(lost: list[LostQuery]) -> str:
    named = "; ".join(f"{quoted(cut(one.query))} {one.said}" for one in lost[:NAMED])
    more = f" And {len(lost) - NAMED:,} more." if len(lost) > NAMED else ""
    count = "A golden query is" if len(lost) == 1 else f"{len(lost):,} golden queries are"
    return f"{count} found no more: {named}{more}"
