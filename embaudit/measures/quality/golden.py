"""Golden queries: which of them a function finds, and which are lost and won by another, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.declared.rule import Finding, Rule
from embaudit.measures.quality.material import Collection
from embaudit.measures.quality.measured import MeasuredCollection
from embaudit.measures.quality.passes import SERVED, Pass
from embaudit.measures.quality.scores import FOUND, CollectionScorer, ResampledScore, answer_ranks
from embaudit.statistics import exact_share
from embaudit.words.sentences import cut, quoted

NAMED, LONGEST = 3, 60
WHERE_LOST = "embaudit why STORE FUNCTION --golden FILE says of each where it is lost."
GOLDEN = Rule(
    "golden",
    "golden queries whose answer is among the first ten",
    look_if="an answer is lost",
    reason="every one of them was chosen by somebody: those that are lost are named",
)
# (n, D) vectors of texts in a role; NaN where there is none.
Encode = Callable[[Sequence[str], TextKind], np.ndarray]


@dataclass(frozen=True)
class MeasuredGolden(MeasuredCollection):
    """Golden queries; their score is the share of which an answer is among the first ten."""

    metric, kind = f"success@{FOUND}", "golden"

    @property
    def name(self) -> str:
        return f"the {self.items} golden queries of {self.data_set}"

    def score(self, similarities: np.ndarray) -> ResampledScore:
        return self.scorer.found(similarities)

    def ranks(self) -> tuple[np.ndarray, np.ndarray]:
        """Rank and place of each query's best answer."""
        return answer_ranks(self.collection, self.similarities())

    def finding(self) -> Finding:
        """How many find an answer, with the worst of the others by name."""
        ranks, _ = self.ranks()
        lost = sorted(np.flatnonzero(ranks > FOUND).tolist(), key=lambda query: -int(ranks[query]))
        found = self.items - len(lost)
        low, high = exact_share(found, self.items)
        named = [f"{_short(self.collection.queries[query])} ({int(ranks[query]):,})" for query in lost]
        return GOLDEN.finding(
            "look" if lost else "ok",
            f"It finds {found:,} of {self.items:,} golden queries' answers of {self.collection.name} among the first "
            f"ten of {len(self.collection.documents):,} documents ({found / self.items:.0%} [{low:.0%}, {high:.0%}])"
            + (f"; not those of {_listed(named)}." if lost else "."),
            "By its vectors alone: an index may lose more.",
            WHERE_LOST if lost else "",
            found / self.items,
            low,
            high,
        )

    def as_json(self) -> list[dict[str, Any]]:
        """Of every query the rank of its best answer."""
        ranks, places = self.ranks()
        answers = [self.collection.documents[place] for place in places]
        return [
            {"query": query, "rank": int(rank), "expected": answer}
            for query, rank, answer in zip(self.collection.queries, ranks, answers, strict=True)
        ]


def measure_golden(
    encode: Encode, collection: Collection, similarity: str, baselines: dict[str, np.ndarray]
) -> MeasuredGolden:
    """Encode queries and documents.

    Args:
        baselines: (queries, documents) similarities by what needs no network.
    """
    queries, documents = encode(collection.queries, "query"), encode(collection.documents, "document")
    one, two = (Pass({SERVED: np.nan_to_num(rows)}) for rows in (queries, documents))
    return MeasuredGolden(collection, CollectionScorer(collection), one, two, (), (), similarity, baselines)


@dataclass(frozen=True)
class GoldenChange:
    """One golden query.

    Attributes:
        expected: the text that it should find, of several the one that is ranked first now.
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
        names: of the two, for sentences.
    """

    name: str
    ranks: tuple[GoldenChange, ...]
    names: tuple[str, str] = ("OLD", "NEW")

    @classmethod
    def of(cls, collection: Collection, old: np.ndarray, new: np.ndarray) -> GoldenChanges:
        """By (queries, documents) similarities of each."""
        (before, _), (after, places) = (answer_ranks(collection, one) for one in (old, new))
        ranks = zip(collection.queries, places, before, after, strict=True)
        return cls(
            collection.name,
            tuple(GoldenChange(query, collection.documents[at], int(one), int(two)) for query, at, one, two in ranks),
        )

    @property
    def lost(self) -> list[GoldenChange]:
        """Among OLD's first ten and not among NEW's, the farthest first."""
        return sorted((one for one in self.ranks if one.old <= FOUND < one.new), key=lambda one: -one.new)

    @property
    def won(self) -> list[GoldenChange]:
        return sorted((one for one in self.ranks if one.new <= FOUND < one.old), key=lambda one: one.new)

    def between(self, old: str, new: str) -> GoldenChanges:
        """The same, in which the two are called so."""
        return replace(self, names=(old, new))

    def as_json(self) -> dict[str, Any]:
        named = {"lost": self.lost, "won": self.won}
        return {
            "name": self.name,
            "queries": len(self.ranks),
            **{what: [vars(one) for one in found] for what, found in named.items()},
        }

    def finding(self, rule: Rule = GOLDEN) -> Finding:
        """What is lost and won, with the first of them by name."""
        queries, found = len(self.ranks), sum(one.new <= FOUND for one in self.ranks)
        before = sum(one.old <= FOUND for one in self.ranks)
        low, high = exact_share(found, queries)
        lost, won = (
            _listed([f"{_short(one.query)} ({one.old:,} → {one.new:,})" for one in some])
            for some in (self.lost, self.won)
        )
        old, new = self.names
        return rule.finding(
            "look" if self.lost else "ok",
            f"{new} finds {found:,} of {queries:,} golden queries' answers of {self.name} among the first "
            f"ten ({found / queries:.0%} [{low:.0%}, {high:.0%}]), {old} {before:,}"
            + (f"; it loses {len(self.lost):,}: {lost}" if lost else "; it loses none")
            + (f"; it wins {len(self.won):,}: {won}" if won else ""),
            "Each of them searches with its own vectors, among the texts that were given.",
            WHERE_LOST if self.lost else "",
            found / queries,
            low,
            high,
        )


def _short(query: str) -> str:
    return quoted(cut(query, LONGEST))


def _listed(named: Sequence[str]) -> str:
    return ", ".join([*named[:NAMED], f"{len(named) - NAMED:,} more"] if len(named) > NAMED else named)
