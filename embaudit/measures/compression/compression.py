"""A collection searched with smaller vectors: what is still found, and whether first dimensions hold more than others.

R(q) are the ten documents that float32 finds for query q, R_w(q) those that way w finds.

    recall of w           mean over q of |R(q) ∩ R_w(q)| / |R(q)|
    nDCG change of w      mean over q of nDCG@10_w(q) − nDCG@10(q)
    beyond random of k    mean over q of recall(first k dimensions) − mean over ten draws of recall(k random dimensions)

A checkpoint trained to be cut (Matryoshka) has more in its first dimensions than in random ones; in any other, the
first k are k like all others. Recall is among few documents here: among millions, the tenth and the eleventh are closer
together, and every way loses more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np

from embaudit.corpora.downstream.retrieval import CUT as NEAREST
from embaudit.corpora.downstream.retrieval import overlaps
from embaudit.measures.collection import RESAMPLES, Searched
from embaudit.measures.compression import Way
from embaudit.measures.compression.codes import cut, hamming, read_back, rescored
from embaudit.statistics.intervals import mean_interval
from embaudit.words.estimate import Estimate

SEED = 0
DRAWS = 10
WAYS: tuple[Way, ...] = get_args(Way)
# The dimensions that are kept: one in so many.
CUTS: dict[Way, int] = {"first half": 2, "first quarter": 4, "first eighth": 8, "first quarter, int8": 4}
BITS: dict[Way, int] = {"int8": 8, "binary": 1, "binary, rescored": 1, "first quarter, int8": 8}
FLOAT_BITS = 32
# Among fewer, ten are most of what there is, whatever the vectors.
MIN_DOCUMENTS = 2 * NEAREST


@dataclass(frozen=True)
class Control:
    """The search by random dimensions: (q,) recall and nDCG of each query, mean over draws.

    Attributes:
        spread: standard deviation over draws of their mean recall.
    """

    recall: np.ndarray
    ndcg: np.ndarray
    spread: float


@dataclass(frozen=True)
class Compressed:
    """One way to store vectors, with (q,) figures of each query.

    Attributes:
        bytes: of a stored vector.
        control: of a cut.
    """

    way: Way
    kept: int
    bytes: int
    recall: np.ndarray
    ndcg: np.ndarray
    control: Control | None = None


def search_compressed(searched: Searched) -> Iterator[Compressed]:
    """Every way that the dimension allows, float32 first."""
    d = searched.documents.shape[1]
    whole = searched.ranking(searched.similarities())
    controls: dict[int, Control] = {}
    for way in WAYS:
        kept = d // CUTS.get(way, 1)
        if not kept:
            continue
        ranking = searched.ranking(similarities(searched, way, kept))
        if kept < d and kept not in controls:
            controls[kept] = _random_dimensions(searched, whole, kept)
        yield Compressed(
            way,
            kept,
            -(-kept * BITS.get(way, FLOAT_BITS) // 8),
            overlaps(whole, ranking),
            searched.ndcg(ranking),
            controls.get(kept),
        )


def similarities(searched: Searched, way: Way, kept: int) -> np.ndarray:
    """(q, n) similarities of queries and stored documents."""
    queries, documents = searched.queries, searched.documents
    if way in ("binary", "binary, rescored"):
        found = hamming(queries, documents, SEED)
        return found if way == "binary" else rescored(found, queries, documents)
    if kept < documents.shape[1]:
        queries, documents = (cut(vectors, np.arange(kept)) for vectors in (queries, documents))
    return searched.similarities(queries, read_back(documents) if way in BITS else documents)


def estimate(values: np.ndarray, units: np.ndarray) -> Estimate:
    """The mean of (q,) values with its interval over queries; queries that share a document are drawn together."""
    return Estimate.holding(float(values.mean()), mean_interval(values, units, RESAMPLES, SEED))


def _random_dimensions(searched: Searched, whole: np.ndarray, kept: int) -> Control:
    generator = np.random.default_rng([SEED, kept])
    recalls, gains = [], []
    for _ in range(DRAWS):
        chosen = generator.choice(searched.documents.shape[1], kept, replace=False)
        ranking = searched.ranking(
            searched.similarities(cut(searched.queries, chosen), cut(searched.documents, chosen))
        )
        recalls.append(overlaps(whole, ranking))
        gains.append(searched.ndcg(ranking))
    spread = float(np.mean(recalls, axis=1).std(ddof=1))
    return Control(np.mean(recalls, axis=0), np.mean(gains, axis=0), spread)
