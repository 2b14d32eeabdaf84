"""Long documents, searched whole and in pieces; no checkpoint.

Which documents are searched (the collection's own, or composed ones), their scores from their pieces, and which way of
searching is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from embaudit.corpora.downstream import in_report
from embaudit.corpora.draw import content_order
from embaudit.measures.collection import RESAMPLES, best_of
from embaudit.measures.quality.material import Collection
from embaudit.statistics import mean_interval
from embaudit.words.estimate import Estimate

# The median document must fall into more than so many pieces of the smallest size.
SEVERAL = 2
BETWEEN = "\n"


@dataclass(frozen=True)
class Searchable:
    """Long documents with their queries.

    Attributes:
        queries: places of the queries in the collection they are from.
        passages: of each document, the places of what it is made of, in order.
        wanted: of each query, the place of its best passage.
    """

    collection: Collection
    queries: tuple[int, ...]
    passages: tuple[tuple[int, ...], ...]
    wanted: tuple[int, ...]


def as_given(collection: Collection) -> Searchable:
    """The collection's documents as they are."""
    count = len(collection.queries)
    wanted = tuple(best_of(grades) for grades in collection.relevant)
    return Searchable(
        collection, tuple(range(count)), tuple((place,) for place in range(len(collection.documents))), wanted
    )


def is_long(lengths: Sequence[int], smallest: int) -> bool:
    """Whether cutting changes most documents, from their lengths and the smallest size."""
    return float(np.median(lengths)) > SEVERAL * smallest


def part_of(collection: Collection, documents: int) -> tuple[Collection, np.ndarray]:
    """At most so many documents, and their places: those of as many queries as two thirds of these hold, and others.

    At least one query is kept with all its documents.
    """
    most, needed = 1, set(collection.relevant[0])
    for query, grades in enumerate(collection.relevant[1:], start=2):
        needed |= set(grades)
        if len(needed) > max(documents * 2 // 3, 1):
            break
        most = query
    return collection.first(most, documents)


def compose(collection: Collection, passages: int, seed: int) -> Searchable:
    """All documents of a collection, but not those that are a query, joined by ``passages`` in an order by content.

    Each is in exactly one composed document, whose grade is the highest of its passages; the last may have fewer.
    """
    themselves = frozenset().union(*collection.own)
    order = [place for place in content_order(collection.documents, seed) if place not in themselves]
    joined = [tuple(order[start : start + passages]) for start in range(0, len(order), passages)]
    within = {place: document for document, own in enumerate(joined) for place in own}
    relevant = [{place: grade for place, grade in grades.items() if place in within} for grades in collection.relevant]
    kept = tuple(query for query, grades in enumerate(relevant) if grades)
    documents = tuple(BETWEEN.join(collection.documents[place] for place in own) for own in joined)
    texts = tuple(collection.queries[query] for query in kept)
    judged = tuple(_highest(relevant[query], within) for query in kept)
    wanted = tuple(best_of(relevant[query]) for query in kept)
    return Searchable(Collection(collection.name, texts, documents, judged), kept, tuple(joined), wanted)


def _highest(grades: Mapping[int, float], within: Mapping[int, int]) -> dict[int, float]:
    found: dict[int, float] = {}
    for place, grade in grades.items():
        found[within[place]] = max(grade, found.get(within[place], 0.0))
    return found


def is_read(searchable: Searchable, lengths: Sequence[int], limit: int, side: str) -> np.ndarray:
    """(q,) whether each query's best passage is read whole.

    Args:
        lengths: tokens of each passage, by its place in the collection.
        limit: tokens of a document that are read.
        side: of the tokens that are not read: ``right`` or ``left``.
    """
    spans: dict[int, tuple[int, int]] = {}
    for own in searchable.passages:
        ends = np.cumsum([lengths[place] for place in own])
        first = max(int(ends[-1]) - limit, 0) if side == "left" else 0
        spans |= {
            place: (int(end) - lengths[place] - first, int(end) - first) for place, end in zip(own, ends, strict=True)
        }
    return np.array([spans[place][0] >= 0 and spans[place][1] <= limit for place in searchable.wanted])


WHOLE = "whole"
# A way, and the most tokens of its pieces.
Key = tuple[str, int]


def best_of_pieces(similarities: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(q, n) the highest of (q, p) similarities to a document's pieces.

    Args:
        owners: (p,) the document of each piece, ascending; each of the n has at least one.
    """
    return np.asarray(np.maximum.reduceat(similarities, _starts(owners), axis=1))


def mean_of_pieces(vectors: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(n, d) mean of the (p, d) vectors of a document's pieces."""
    starts = _starts(owners)
    counts = np.diff([*starts, len(owners)])
    return np.asarray(np.add.reduceat(vectors.astype(np.float64), starts, axis=0) / counts[:, None])


def mean_scores(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(q, n) mean of (q, p) scores of a document's pieces."""
    return mean_of_pieces(scores.T, owners).T


def _starts(owners: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])


@dataclass(frozen=True)
class ChosenWay:
    """The way that half of the queries wants, and its gain over the whole on the others."""

    way: Key
    choosing: int
    reporting: int
    whole: float
    gain: Estimate


@dataclass(frozen=True)
class Ways:
    """nDCG@10 of each query, (q,), by the way of searching; the whole is one of them."""

    collection: Collection
    found: Mapping[Key, np.ndarray]

    @cached_property
    def whole(self) -> np.ndarray:
        return next(scores for (way, _), scores in self.found.items() if way == WHOLE)

    @cached_property
    def best(self) -> Key:
        """The highest score; of several, the first."""
        return max(self.found, key=lambda key: float(self.found[key].mean()))

    def row(self, key: Key, queries: np.ndarray | None = None) -> dict[str, float | int | str | None]:
        """Score and gain with their intervals, of the queries where (q,) is true."""
        chosen = np.ones(len(self.whole), dtype=bool) if queries is None else queries
        scores, gains = self.found[key][chosen], (self.found[key] - self.whole)[chosen]
        way, size = key
        return {
            # Limits differ by checkpoint, and whole documents are compared all the same.
            "searched": way if way == WHOLE else f"{way} {size}",
            **{"way": way, "size": size, "queries": int(chosen.sum())},
            **self._mean(scores, chosen).columns("score"),
            **self._mean(gains, chosen).columns("gain"),
        }

    def choice(self, seed: int) -> ChosenWay | None:
        """None if all queries are about one document, or there is nothing to choose from."""
        report = in_report(self.collection.queries, self.collection.units, seed)
        others = [key for key in self.found if key[0] != WHOLE]
        if not others or report.all() or not report.any():
            return None
        way = max(others, key=lambda key: float(self.found[key][~report].mean()))
        gains = (self.found[way] - self.whole)[report]
        return ChosenWay(
            way,
            int((~report).sum()),
            int(report.sum()),
            float(self.whole[report].mean()),
            self._mean(gains, report),
        )

    def _mean(self, values: np.ndarray, chosen: np.ndarray) -> Estimate:
        units = self.collection.units[chosen]
        return Estimate.holding(float(values.mean()), mean_interval(values, units, RESAMPLES, 0))
