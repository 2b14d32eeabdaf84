"""A data set with the vectors of its texts: similarities under any name, and the score that its kind of data allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import declared_similarity
from embaudit.measures.quality.baselines import collection_baselines, pair_baselines
from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.measures.quality.passes import POOLINGS, SERVED, MultiPoolingEncoder, Pass, of_all, of_pairs
from embaudit.measures.quality.scores import CollectionScorer, PairScorer, ResampledScore
from embaudit.words.estimate import Numbers

Ids = Sequence[Sequence[int]]


@dataclass(frozen=True)
class MeasuredPairs:
    """Scored pairs; their score is Spearman's ρ.

    Attributes:
        by_layer: the similarities if the network stopped after its embeddings and each layer; empty if not known.
    """

    pairs: ScoredPairs
    scorer: PairScorer
    firsts: Pass
    seconds: Pass
    firsts_ids: Ids
    seconds_ids: Ids
    similarity: str
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    by_layer: tuple[np.ndarray, ...] = ()

    metric, kind = "Spearman's ρ", "pairs"

    @property
    def name(self) -> str:
        return f"the {self.items} pairs of {self.data_set}"

    @property
    def data_set(self) -> str:
        return self.pairs.name

    @property
    def items(self) -> int:
        """Number of pairs."""
        return len(self.pairs.scores)

    def similarities(
        self, name: str = SERVED, similarity: str | None = None, dimensions: int | None = None
    ) -> np.ndarray:
        """(n,) similarity of each pair under one of the pass's vectors, or their first dimensions."""
        one, two = (side.vectors[name][:, :dimensions] for side in (self.firsts, self.seconds))
        return of_pairs(one, two, similarity or self.similarity)

    def score(self, similarities: np.ndarray) -> ResampledScore:
        return self.scorer.spearman(similarities)


@dataclass(frozen=True)
class MeasuredCollection:
    """A judged collection; its score is nDCG@10.

    Attributes:
        by_layer: the similarities if the network stopped after its embeddings and each layer; empty if not known.
    """

    collection: Collection
    scorer: CollectionScorer
    queries: Pass
    documents: Pass
    query_ids: Ids
    document_ids: Ids
    similarity: str
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    by_layer: tuple[np.ndarray, ...] = ()

    metric, kind = "nDCG@10", "queries"

    @property
    def name(self) -> str:
        return f"the {self.items} queries of {self.data_set}"

    @property
    def data_set(self) -> str:
        return self.collection.name

    @property
    def items(self) -> int:
        """Number of queries."""
        return len(self.collection.queries)

    def similarities(
        self, name: str = SERVED, similarity: str | None = None, dimensions: int | None = None
    ) -> np.ndarray:
        """(queries, documents) similarity under one of the pass's vectors, or their first dimensions."""
        one, two = (side.vectors[name][:, :dimensions] for side in (self.queries, self.documents))
        return of_all(one, two, similarity or self.similarity)

    def score(self, similarities: np.ndarray) -> ResampledScore:
        return self.scorer.ndcg(similarities)


Measured = MeasuredPairs | MeasuredCollection


def measure_pairs(checkpoint: Checkpoint, pairs: ScoredPairs) -> MeasuredPairs:
    """Encode each sentence once.

    Raises:
        MeasureError: if a vector is not finite.
    """
    encoder = MultiPoolingEncoder(checkpoint.reading("text"))
    distinct = list(dict.fromkeys([*pairs.firsts, *pairs.seconds]))
    place = {text: index for index, text in enumerate(distinct)}
    ids = encoder.tokenize(distinct)
    found = encoder.passes(ids, POOLINGS, with_layers=True)
    similarity = declared_similarity(checkpoint)
    first, second = ([place[text] for text in side] for side in (pairs.firsts, pairs.seconds))
    return MeasuredPairs(
        pairs,
        PairScorer(pairs),
        _rows(found, first),
        _rows(found, second),
        [ids[row] for row in first],
        [ids[row] for row in second],
        similarity,
        pair_baselines(encoder.checkpoint, pairs.firsts, pairs.seconds),
        # Of many layers, vectors would be most of what is in memory.
        tuple(of_pairs(rows[first], rows[second], similarity) for rows in found.layers),
    )


def measure_collection(checkpoint: Checkpoint, collection: Collection) -> MeasuredCollection:
    """Encode each query and document once, with its prompt.

    Raises:
        MeasureError: if a vector is not finite.
    """
    queries, documents = (
        MultiPoolingEncoder(checkpoint.reading("query")),
        MultiPoolingEncoder(checkpoint.reading("document")),
    )
    asked, known = queries.tokenize(collection.queries), documents.tokenize(collection.documents)
    of_queries, of_documents = (
        encoder.passes(ids, POOLINGS, with_layers=True) for encoder, ids in ((queries, asked), (documents, known))
    )
    similarity = declared_similarity(checkpoint)
    return MeasuredCollection(
        collection,
        CollectionScorer(collection),
        Pass(of_queries.vectors),
        Pass(of_documents.vectors),
        asked,
        known,
        similarity,
        collection_baselines(checkpoint, collection.queries, collection.documents),
        tuple(of_all(*rows, similarity) for rows in zip(of_queries.layers, of_documents.layers, strict=True)),
    )


def as_json(score: ResampledScore) -> Numbers:
    """Value and interval of a score."""
    return score.estimate().as_json()


def _rows(found: Pass, places: Sequence[int]) -> Pass:
    rows = np.asarray(places, dtype=np.int64)
    return Pass({name: part[rows] for name, part in found.vectors.items()})
