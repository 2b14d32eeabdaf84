"""Golden queries under two functions: which are lost and which are won, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embaudit.comparisons.switch.material import SwitchedSearch
from embaudit.finding import Finding
from embaudit.intervals import exact_share
from embaudit.shown import cut, quoted

K = 10
NAMED, LONGEST = 3, 60


@dataclass(frozen=True)
class GoldenChange:
    """One golden query.

    Attributes:
        expected: the text that it should find, of several the one that NEW ranks first.
        old, new: its rank by each.
    """

    query: str
    expected: str
    old: int
    new: int


@dataclass(frozen=True)
class GoldenChanges:
    """What becomes of golden queries.

    Attributes:
        name: of the collection.
        ranks: of every query that has an answer among the documents.
    """

    name: str
    ranks: tuple[GoldenChange, ...]

    @property
    def lost(self) -> list[GoldenChange]:
        """Among OLD's first ten and not among NEW's, the farthest first."""
        return sorted((one for one in self.ranks if one.old <= K < one.new), key=lambda one: -one.new)

    @property
    def won(self) -> list[GoldenChange]:
        return sorted((one for one in self.ranks if one.new <= K < one.old), key=lambda one: one.new)

    def as_json(self) -> dict[str, Any]:
        named = {"lost": self.lost, "won": self.won}
        return {
            "name": self.name,
            "queries": len(self.ranks),
            **{what: [vars(one) for one in found] for what, found in named.items()},
        }

    def finding(self) -> Finding:
        """What is lost and won, with the first of them by name."""
        queries, found = len(self.ranks), sum(one.new <= K for one in self.ranks)
        low, high = exact_share(found, queries)
        lost, won = ", ".join(_named(self.lost)), ", ".join(_named(self.won))
        return Finding(
            "look" if self.lost else "ok",
            f"NEW finds {found:,} of {queries:,} golden queries' answers among the first ten "
            f"({found / queries:.0%} [{low:.0%}, {high:.0%}]), OLD {sum(one.old <= K for one in self.ranks):,}"
            + (f"; it loses {len(self.lost):,}: {lost}" if lost else "; it loses none")
            + (f"; it wins {len(self.won):,}: {won}" if won else ""),
            "Each of them searches with its own vectors, among the texts that were given.",
            "embaudit why says of each where it is lost." if self.lost else "",
            "golden",
            found / queries,
            low,
            high,
        )


def golden_changes(search: SwitchedSearch) -> GoldenChanges:
    """Ranks of the best answer of each query by OLD's vectors and by NEW's: 1 + the documents that are more similar."""
    ranks = []
    for query, grades in enumerate(search.collection.relevant):
        answers = [place for place in grades if search.rankable[query, place]]
        if not answers:
            continue
        both = []
        for scores in search.scores:
            own = scores[query]
            best = max(answers, key=lambda place: own[place])
            both.append((int((own[search.rankable[query]] > own[best]).sum()) + 1, best))
        (old, _), (new, place) = both
        ranks.append(GoldenChange(search.collection.queries[query], search.collection.documents[place], old, new))
    return GoldenChanges(search.collection.name, tuple(ranks))


def _named(changes: Sequence[GoldenChange]) -> list[str]:
    shown = [f"{quoted(cut(one.query, LONGEST))} ({one.old:,} → {one.new:,})" for one in changes[:NAMED]]
    return [*shown, f"{len(changes) - NAMED:,} more"] if len(changes) > NAMED else shown
