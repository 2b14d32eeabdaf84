"""Which long documents are searched: the collection's own, or composed ones; no checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.draw import content_order
from embaudit.measures.pieces import best_of
from embaudit.measures.quality.material import Collection

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
