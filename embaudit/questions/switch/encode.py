"""Encodes the texts of a switch: each once by each function, in the role that it is used in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.questions.switch.material import OldAndNew, SwitchedPairs, SwitchedSearch
from embaudit.statistics import student_half_width
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import quoted

# Texts that ask for their own neighbours.
MOST_ASKING = 500
BYTES = 4
NOUNS: dict[TextKind, str] = {"text": "texts", "query": "queries", "document": "documents"}
# Documents that are encoded as queries, too, where there are no queries.
AS_QUERIES = 50
# What vectors are compared by where nothing else is declared.
UNDECLARED = "cosine"


@dataclass(frozen=True)
class SearchTexts:
    """A collection to encode; with ``asks_itself``, its queries are documents and are encoded as such."""

    collection: Collection
    asks_itself: bool = False

    @classmethod
    def of(cls, name: str, documents: Sequence[str], queries: Sequence[str] | None = None) -> SearchTexts:
        """Distinct documents, and queries without judgements; without queries, documents ask for their neighbours."""
        known = tuple(dict.fromkeys(documents))
        place = {text: index for index, text in enumerate(known)}
        asked = tuple(dict.fromkeys(queries)) if queries is not None else known[:MOST_ASKING]
        own = tuple(frozenset({place[text]} if text in place else ()) for text in asked)
        return cls(Collection(name, asked, known, ({},) * len(asked), own), asks_itself=queries is None)


@dataclass(frozen=True)
class Cost:
    """What encoding an index again takes and stores.

    Attributes:
        seconds: its interval is that of the mean length of a text.
        tokens_per_second: measured while the texts were encoded.
        tokens: mean tokens of a text; words, if nobody can count tokens.
        counted_in: which of both.
        device: where NEW runs: a device, or its name if nobody sees where.
        stored: bytes of the vectors in float32, of OLD and of NEW.
        encoded: texts that were measured.
    """

    rows: int
    seconds: Estimate
    tokens_per_second: float
    tokens: float
    device: str
    stored: tuple[int, int]
    encoded: int
    counted_in: str = "tokens"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class TimedEncoder:
    """One of the two functions.

    Attributes:
        seconds, lengths: what encoding took and how many tokens texts have, by use; words, if nobody can count tokens.
    """

    name: str
    function: EmbeddingFunction
    seconds: dict[TextKind, float] = field(default_factory=dict)
    lengths: dict[TextKind, list[int]] = field(default_factory=dict)

    def vectors(self, kind: TextKind, texts: Sequence[str]) -> np.ndarray:
        """(n, D) float32, each distinct text encoded once.

        Raises:
            MeasureError: if a text has no vector.
        """
        distinct = list(dict.fromkeys(texts))
        start = time.perf_counter()
        answers = self.function.encode(distinct, kind)
        self.seconds[kind] = self.seconds.get(kind, 0.0) + time.perf_counter() - start
        rows = answers.vectors.astype(np.float32)
        lacking = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(lacking):
            reason = answers.failures.get(int(lacking[0]), "it gives NaN or infinity")
            raise MeasureError(
                f"{self.name} has no vector of {len(lacking):,} of {len(distinct):,} {NOUNS[kind]}, "
                f"{quoted(distinct[lacking[0]])} first: {reason}.",
                next_step=f"See what is wrong with it: embaudit check {self.function.typed}",
            )
        self.lengths.setdefault(kind, []).extend(self._lengths(kind, distinct))
        place = {text: index for index, text in enumerate(distinct)}
        return rows[[place[text] for text in texts]]

    def _lengths(self, kind: TextKind, texts: Sequence[str]) -> Iterable[int]:
        if self.function.checkpoint is None:
            return (len(text.split()) for text in texts)
        return map(len, self.function.checkpoint.reading(kind).tokenize(texts))

    def all_of(
        self, pairs: Sequence[ScoredPairs], searches: Sequence[SearchTexts], *, as_queries: bool
    ) -> Iterator[np.ndarray]:
        """Of each data set, the vectors of its two sides: firsts and seconds, queries and documents.

        Args:
            as_queries: of documents without queries, those of the first ones as queries come third.
        """
        for some in pairs:
            both = self.vectors("text", [*some.firsts, *some.seconds])
            yield from (both[: len(some.firsts)], both[len(some.firsts) :])
        for search in searches:
            known = self.vectors("document", search.collection.documents)
            if search.asks_itself:
                yield known[[place for own in search.collection.own for place in own]]
            else:
                yield self.vectors("query", search.collection.queries)
            yield known
            if search.asks_itself and as_queries:
                yield self.vectors("query", search.collection.documents[:AS_QUERIES])


def encode_all(
    old: EmbeddingFunction,
    new: EmbeddingFunction,
    pairs: Sequence[ScoredPairs],
    searches: Sequence[SearchTexts],
    rows: int,
    progress: Callable[[str], None] = lambda what: None,
) -> tuple[list[SwitchedPairs], list[SwitchedSearch], Cost]:
    """The vectors of both, and what NEW would take for ``rows`` texts like the documents (like all, without any).

    Raises:
        MeasureError: if a vector is not finite, or there are too few documents.
    """
    encoders = TimedEncoder("OLD", old), TimedEncoder("NEW", new)
    found = []
    as_queries = any(one.alike("query") != one.alike("document") for one in (old, new))
    for encoder in encoders:
        progress(f"the texts with {encoder.name}")
        found.append(list(encoder.all_of(pairs, searches, as_queries=as_queries)))
    sides = iter([OldAndNew(*both) for both in zip(*found, strict=True)])
    similarities = old.similarity or UNDECLARED, new.similarity or UNDECLARED
    return (
        [SwitchedPairs(some, next(sides), next(sides), similarities) for some in pairs],
        [
            SwitchedSearch(
                one.collection,
                next(sides),
                next(sides),
                one.asks_itself,
                similarities,
                next(sides) if one.asks_itself and as_queries else None,
            )
            for one in searches
        ],
        _cost(encoders[0], encoders[1], rows),
    )


def _cost(old: TimedEncoder, new: TimedEncoder, rows: int) -> Cost:
    kind: TextKind = "document" if "document" in new.seconds else "text"
    checkpoint = new.function.checkpoint
    lengths = np.array(new.lengths[kind], dtype=np.float64)
    speed = float(lengths.sum()) / max(new.seconds[kind], 1e-9)
    mean = float(lengths.mean())
    length = Estimate.around(mean, student_half_width(lengths))
    return Cost(
        rows,
        Estimate(*(None if end is None else rows * end / speed for end in length)),
        speed,
        mean,
        new.function.name if checkpoint is None else checkpoint.device,
        (rows * (old.function.dimension or 0) * BYTES, rows * (new.function.dimension or 0) * BYTES),
        len(lengths),
        "words" if checkpoint is None else "tokens",
    )
