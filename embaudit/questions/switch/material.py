"""The vectors that two checkpoints give to the same texts: pairs, and queries with the documents of an index."""

from __future__ import annotations

from collections.abc import Collection as Several
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from embaudit.corpora.downstream import units_of
from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.measures.quality.passes import of_all, of_pairs
from embaudit.words.errors import MeasureError

# Of fewer documents, the first ten are always more than half.
MIN_DOCUMENTS = 20


@dataclass(frozen=True)
class OldAndNew:
    """Vectors of the same texts.

    Attributes:
        old: (n, D) of the checkpoint that built the index.
        new: (n, D′) of the one to switch to.
    """

    old: np.ndarray
    new: np.ndarray

    def __post_init__(self) -> None:
        if self.old.ndim != 2 or self.new.ndim != 2 or len(self.old) != len(self.new):
            raise MeasureError(
                f"Vectors of the same texts are needed, a row for each, not arrays of {self.old.shape} and "
                f"{self.new.shape}."
            )
        for name, rows in (("OLD", self.old), ("NEW", self.new)):
            if not np.isfinite(rows).all():
                row = int(np.argmin(np.isfinite(rows).all(axis=1)))
                raise MeasureError(
                    f"{name} has NaN or infinity in {int((~np.isfinite(rows).all(axis=1)).sum())} of {len(rows)} "
                    f"vectors, row {row} first.",
                    next_step="embaudit check says what is wrong with a checkpoint that gives such vectors.",
                )
            if len(rows) and not rows.any():
                raise MeasureError(
                    f"All {len(rows)} vectors of {name} are zero.",
                    next_step="embaudit check says what is wrong with a checkpoint that gives such vectors.",
                )

    def at(self, places: np.ndarray) -> OldAndNew:
        return OldAndNew(self.old[places], self.new[places])

    @property
    def has_one_dimension(self) -> bool:
        return self.old.shape[1] == self.new.shape[1]


@dataclass(frozen=True)
class SwitchedPairs:
    """Scored pairs with the vectors of both."""

    pairs: ScoredPairs
    firsts: OldAndNew
    seconds: OldAndNew
    similarities: tuple[str, str] = ("cosine", "cosine")

    @cached_property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) similarity of each pair, by OLD and by NEW."""
        old, new = self.similarities
        return of_pairs(self.firsts.old, self.seconds.old, old), of_pairs(self.firsts.new, self.seconds.new, new)


@dataclass(frozen=True)
class SwitchedSearch:
    """An index's documents and queries with the vectors of both.

    Attributes:
        collection: queries that are not judged have no relevant documents; a document that asks for its neighbours is
            its own (``Collection.own``).
        asked, known: vectors of queries and documents.
        asks_itself: whether the queries are documents, searched with their own vectors.
        similarities: of OLD and of NEW; an index of OLD's documents is searched with OLD's.
        as_queries: where there are no queries, the first documents encoded as such; None if both encode them alike.
    """

    collection: Collection
    asked: OldAndNew
    known: OldAndNew
    asks_itself: bool = False
    similarities: tuple[str, str] = ("cosine", "cosine")
    as_queries: OldAndNew | None = None

    def __post_init__(self) -> None:
        documents = len(self.collection.documents)
        if documents < MIN_DOCUMENTS:
            raise MeasureError(
                f"{self.collection.name} has {documents} different documents: of so few, the first ten say nothing.",
                next_step=f"Give at least {MIN_DOCUMENTS}, better 2,000, of the texts that are in the index.",
            )
        if not self.collection.queries:
            raise MeasureError(f"{self.collection.name} has no queries.")
        for name, of_one in (("OLD", "old"), ("NEW", "new")):
            widths = [getattr(rows, of_one).shape[1] for rows in (self.asked, self.known)]
            if widths[0] != widths[1]:
                raise MeasureError(
                    f"{name}'s vectors of queries and of documents have {widths[0]} and {widths[1]} dimensions."
                )

    @property
    def is_judged(self) -> bool:
        return any(self.collection.relevant)

    @property
    def name(self) -> str:
        if self.asks_itself:
            return f"{len(self.collection.queries):,} texts of {self.collection.name}, each asking for its neighbours"
        return f"the {len(self.collection.queries):,} queries of {self.collection.name}"

    @cached_property
    def rankable(self) -> np.ndarray:
        """(queries, documents): whether a document is ranked for a query. A query's own text is not, unless judged."""
        can = np.ones((len(self.collection.queries), len(self.collection.documents)), dtype=bool)
        for query, own in enumerate(self.collection.own):
            can[query, list(own)] = False
        return can

    @cached_property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """(queries, documents) similarities, by OLD and by NEW."""
        old, new = self.similarities
        return of_all(self.asked.old, self.known.old, old), of_all(self.asked.new, self.known.new, new)

    @cached_property
    def units(self) -> np.ndarray:
        """(queries + documents,): a query, its relevant documents and its own text are in one unit."""
        count = len(self.collection.queries)
        links = [(query, count + place) for query, grades in enumerate(self.collection.relevant) for place in grades]
        links += [(query, count + place) for query, own in enumerate(self.collection.own) for place in own]
        return units_of(count + len(self.collection.documents), links)

    @property
    def query_units(self) -> np.ndarray:
        return self.units[: len(self.collection.queries)]


def search_of_vectors(
    documents: OldAndNew,
    queries: OldAndNew | None = None,
    relevant: Sequence[Mapping[int, float]] = (),
    *,
    own: Sequence[Several[int]] = (),
    name: str = "the index",
    texts: Sequence[str] | None = None,
    query_texts: Sequence[str] | None = None,
    similarities: tuple[str, str] = ("cosine", "cosine"),
) -> SwitchedSearch:
    """A search from vectors alone, for callers that have no checkpoint.

    Args:
        documents: vectors of the same documents by both.
        queries: None: every document asks for its neighbours.
        relevant: for each query, the grades of its relevant documents by place; empty: not judged.
        own: for each query, the documents that are the query itself.
        texts, query_texts: what is shown of them; by default, their numbers.

    Raises:
        MeasureError: if a vector is not finite, lengths differ, or there are too few documents.
    """
    shown = tuple(texts or (f"document {place}" for place in range(len(documents.old))))
    if queries is None:
        own_place = tuple(frozenset({place}) for place in range(len(shown)))
        collection = Collection(name, shown, shown, ({},) * len(shown), own_place)
        return SwitchedSearch(collection, documents, documents, asks_itself=True, similarities=similarities)
    asked = tuple(query_texts or (f"query {place}" for place in range(len(queries.old))))
    grades = tuple(relevant) or ({},) * len(asked)
    if not len(asked) == len(grades) == len(queries.old) or len(shown) != len(documents.old):
        raise MeasureError(
            f"{len(queries.old)} queries with {len(asked)} texts and {len(grades)} judgements, {len(documents.old)} "
            f"documents with {len(shown)} texts: there must be one of each."
        )
    collection = Collection(name, asked, shown, grades, tuple(frozenset(one) for one in own))
    return SwitchedSearch(collection, queries, documents, similarities=similarities)
