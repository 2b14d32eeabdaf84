"""What two functions make of the same pairs and queries: similarities, neighbours, and what they are worth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.embedders.function import EmbeddingFunction, roles_to_compare
from embaudit.measures.quality.material import Collection, Material, ScoredPairs
from embaudit.measures.quality.passes import of_all, of_pairs
from embaudit.measures.quality.scores import CollectionScorer, PairScorer
from embaudit.questions.parity.compare import apart
from embaudit.statistics import spearman
from embaudit.words.errors import EmbauditError
from embaudit.words.estimate import Estimate

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

PAIRS, QUERIES, DOCUMENTS = 150, 40, 120
NEIGHBOURS = 10


@dataclass(frozen=True)
class CorpusDifference:
    """Two functions on one data set.

    Attributes:
        worst: the largest 1 − cosine of a text's vectors; None if they are of different dimension.
        agreement: Spearman's ρ of the two functions' similarities of the pairs; of a collection, the mean over queries.
        overlap: of a collection, the share of a query's first ten documents that both find.
        scales: median similarity of unrelated and of matching pairs, by the checkpoint and by the other.
        metric, score, change: the checkpoint's score, and what the other's is above it, paired.
    """

    name: str
    texts: int
    worst: float | None
    agreement: float | None
    overlap: float | None
    scales: dict[str, tuple[float, float]]
    metric: str
    score: Estimate
    change: Estimate

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_on(material: Material, ours: EmbeddingFunction, theirs: EmbeddingFunction) -> list[CorpusDifference]:
    """Both functions on every data set; texts of which one has no vector are left out."""
    pairs = [_on_pairs(some.first(PAIRS), ours, theirs) for some in material.pairs]
    collections = [_on_collection(some.first(QUERIES, DOCUMENTS)[0], ours, theirs) for some in material.collections]
    return [found for found in (*pairs, *collections) if found is not None]


def _on_pairs(pairs: ScoredPairs, ours: EmbeddingFunction, theirs: EmbeddingFunction) -> CorpusDifference | None:
    texts = [*pairs.firsts, *pairs.seconds]
    both = [function.encode(texts).vectors for function in (ours, theirs)]
    half = len(pairs.firsts)
    has_both = np.logical_and.reduce([np.isfinite(rows).all(axis=1) for rows in both])
    kept = np.flatnonzero(has_both[:half] & has_both[half:])
    if len(kept) < 2:
        return None
    part = pairs.at(kept)
    own, other = (of_pairs(rows[:half][kept], rows[half:][kept]) for rows in both)
    scorer = PairScorer(part)
    score = scorer.spearman(own)
    scales = {
        name: (float(np.median(own[chosen])), float(np.median(other[chosen])))
        for name, chosen in (("unrelated", part.is_unrelated), ("matching", part.is_matching))
        if chosen.any()
    }
    return CorpusDifference(
        f"pairs of {pairs.name}",
        len(texts),
        _worst(*both),
        spearman(own, other),
        None,
        scales,
        "Spearman's ρ",
        score.estimate(),
        scorer.spearman(other).minus(score).estimate(),
    )


def _on_collection(
    collection: Collection, ours: EmbeddingFunction, theirs: EmbeddingFunction
) -> CorpusDifference | None:
    texts = [*collection.queries, *collection.documents]
    # Where one of them is asked for all texts alike, the other is, too.
    roles: tuple[TextKind, TextKind] = ("text", "text")
    if roles_to_compare(ours, theirs):
        roles = "query", "document"
    try:
        both = [
            np.concatenate(
                [
                    function.encode(some, role).vectors
                    for some, role in zip((collection.queries, collection.documents), roles, strict=True)
                ]
            )
            for function in (ours, theirs)
        ]
    except EmbauditError:
        # It gives no vector of queries at all, which the texts alone have shown.
        return None
    # A document without a vector is found by no query.
    queries = len(collection.queries)
    if any(not np.isfinite(part).any() for rows in both for part in (rows[:queries], rows[queries:])):
        return None
    own, other = (of_all(np.nan_to_num(rows[:queries]), np.nan_to_num(rows[queries:])) for rows in both)
    scorer = CollectionScorer(collection)
    score = scorer.ndcg(own)
    first = [np.argsort(-found, axis=1, kind="stable")[:, :NEIGHBOURS] for found in (own, other)]
    shared = [len(set(one) & set(two)) / len(one) for one, two in zip(*first, strict=True)]
    agreements = [spearman(one, two) for one, two in zip(own, other, strict=True)]
    return CorpusDifference(
        f"queries of {collection.name}",
        len(texts),
        _worst(*both),
        float(np.mean([one for one in agreements if one is not None])) if any(agreements) else None,
        float(np.mean(shared)),
        {},
        "nDCG@10",
        score.estimate(),
        scorer.ndcg(other).minus(score).estimate(),
    )


def _worst(own: np.ndarray, other: np.ndarray) -> float | None:
    if own.shape != other.shape:
        return None
    distances = apart(own, other)
    return float(np.nanmax(distances)) if np.isfinite(distances).any() else None
