"""Surface as a step: the queries of a collection, written otherwise in every way, and what that does to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.corpora.downstream.retrieval import overlaps, ranked
from embaudit.measures.collection import RESAMPLES, Searched, collection_of, read_collection
from embaudit.measures.run import Run
from embaudit.measures.surface import MEASURE_VERSION, SurfaceRow, SurfaceSettings
from embaudit.measures.surface.changes import CHANGES, SurfaceChange
from embaudit.statistics import mean_interval
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

if TYPE_CHECKING:
    from embaudit.checkpoint import Encoder

SEED = 0


@dataclass(frozen=True)
class SurfaceEffect:
    """What one change does to each of the (q,) queries that it writes otherwise.

    Attributes:
        units: queries that share a relevant document have one unit.
        is_same: whether the token ids are the same.
        is_unwritten: whether the tokenizer cannot write it, though it could before.
        moved: 1 − cosine.
        overlap: overlap@10.
        before, after: nDCG@10.
        words_overlap, words_change: overlap@10 and change of nDCG@10 by TF-IDF; None if no text has a word.
    """

    units: np.ndarray
    is_same: np.ndarray
    is_unwritten: np.ndarray
    moved: np.ndarray
    overlap: np.ndarray
    before: np.ndarray
    after: np.ndarray
    words_overlap: np.ndarray | None = None
    words_change: np.ndarray | None = None

    def columns(self) -> dict[str, float | int | None]:
        """The measured columns of a row of ``surface``."""
        return {
            "queries": len(self.units),
            "units": len(np.unique(self.units)),
            "same_tokens": _mean(self.is_same),
            "unwritten": _mean(self.is_unwritten),
            "moved": _mean(self.moved),
            **self._estimate("overlap", self.overlap),
            "ndcg": _mean(self.before),
            **self._estimate("ndcg_change", self.after - self.before),
            "words_overlap": _mean(self.words_overlap),
            "words_ndcg_change": _mean(self.words_change),
        }

    def _estimate(self, name: str, values: np.ndarray) -> dict[str, float | None]:
        mean = _mean(values)
        interval = mean_interval(values, self.units, RESAMPLES, SEED) if len(values) else None
        return Estimate.holding(mean, interval).columns(name)


def _mean(values: np.ndarray | None) -> float | None:
    return float(np.mean(values)) if values is not None and len(values) else None


def is_newly_unwritten(before: Sequence[int], after: Sequence[int], unknown: int | None) -> bool:
    """Whether a text's own ids have the unknown token, or are none at all, which they had or were not before."""
    return (not after and bool(before)) or (unknown in after and unknown not in before)


def distances(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(q,) 1 − cosine of the rows of (q, d) and (q, d); 0 for the same row, 1 for one of zeros, without direction."""
    one, two = (rows.astype(np.float64) for rows in (before, after))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    products = np.einsum("qd,qd->q", one, two)
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    # Rounding would move what has not moved at all.
    return np.where((before == after).all(axis=1), 0.0, 1 - cosines)


Ids = list[tuple[int, ...]]


@step("surface", version=MEASURE_VERSION, tables=(SurfaceRow,), name="surface")
def query_surface(out: Outputs, spec: CheckpointSpec, collection: Staged, seed: int) -> None:
    """Table ``surface``.

    Args:
        collection: from ``collection_of``.
        seed: of the typos.
    """
    searched, encoder = read_collection(collection), encoder_of(spec, "query")
    queries = searched.collection.queries
    written = {change: [change.write(text, seed) for text in queries] for change in CHANGES}
    before, vectors = _encoded(encoder, searched, written)
    words = _WordRankings(searched)
    rows = []
    for change, texts in written.items():
        places = np.array([place for place, text in enumerate(queries) if texts[place] != text], dtype=np.int64)
        effect = _effect(encoder, searched, texts, places, before, vectors, words)
        rows.append(
            {
                "change": change.name,
                "kind": change.kind,
                "data_set": searched.collection.name,
                "documents": len(searched.collection.documents),
                "unchanged": len(queries) - len(places),
                **effect.columns(),
            }
        )
    out.rows(SurfaceRow, rows, encodes=encoder.texts)


def _encoded(
    encoder: Encoder, searched: Searched, written: dict[SurfaceChange, list[str]]
) -> tuple[Ids, dict[tuple[int, ...], np.ndarray]]:
    """The ids of the queries as they are, and the vector of each sequence of ids."""
    before = [tuple(ids) for ids in encoder.tokenize(searched.collection.queries)]
    found = dict(zip(before, searched.queries, strict=True))
    every = {tuple(ids) for texts in written.values() for ids in encoder.tokenize(texts)}
    # In an order that does not depend on hashes: batches, and with them the last digits, are the same again.
    new = sorted(ids for ids in every if ids and ids not in found)
    found |= zip(new, encoder.encode_ids(new), strict=True)
    # A checkpoint without special tokens has nothing to encode for a text that its tokenizer cannot write.
    found[()] = np.zeros(searched.queries.shape[1], dtype=np.float32)
    return before, found


def _effect(
    encoder: Encoder,
    searched: Searched,
    texts: Sequence[str],
    places: np.ndarray,
    before: Ids,
    vectors: dict[tuple[int, ...], np.ndarray],
    words: _WordRankings,
) -> SurfaceEffect:
    """What the texts do that are at these places instead of the queries."""
    if not len(places):
        return SurfaceEffect(*[np.empty(0)] * 7)
    part = searched.only(places)
    ids = [tuple(one) for one in encoder.tokenize([texts[place] for place in places])]
    new = np.array([vectors[one] for one in ids], dtype=np.float32)
    own = [encoder.own_ids([side[place] for place in places]) for side in (searched.collection.queries, texts)]
    unknown = encoder.checkpoint.tokenizer.unk_token_id
    similarities = part.similarities(queries=new)
    # What has no vector finds nothing.
    similarities[[not one for one in ids]] = -np.inf
    first, second = part.ranking(part.similarities()), part.ranking(similarities)
    words_overlap, words_change = words.compared(part, texts, places)
    return SurfaceEffect(
        units=searched.collection.units[places],
        is_same=np.array([one == before[place] for one, place in zip(ids, places, strict=True)]),
        is_unwritten=np.array([is_newly_unwritten(one, two, unknown) for one, two in zip(*own, strict=True)]),
        moved=distances(part.queries, new),
        overlap=overlaps(first, second),
        before=part.ndcg(first),
        after=part.ndcg(second),
        words_overlap=words_overlap,
        words_change=words_change,
    )


class _WordRankings:
    """Rankings by TF-IDF of the queries as they are, and of some of them written otherwise."""

    def __init__(self, searched: Searched) -> None:
        self._searched = searched
        self._before = self._ranking(searched.collection.queries)

    def compared(
        self, part: Searched, texts: Sequence[str], places: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """(q,) overlap@10 and change of nDCG@10 of the queries at these places; None if no text has a word."""
        after = self._ranking(texts)
        if self._before is None or after is None:
            return None, None
        first, second = self._before[places], after[places]
        return overlaps(first, second), part.ndcg(second) - part.ndcg(first)

    def _ranking(self, queries: Sequence[str]) -> np.ndarray | None:
        from embaudit.measures.quality.measured import word_cosines

        cosines = word_cosines(queries, self._searched.collection.documents)
        if cosines is None:
            return None
        # A document without a word of the query is not found by its words.
        return ranked(np.where(cosines > 0, cosines, -np.inf), self._searched.collection.own)


def measure(run: Run) -> list[Staged]:
    """What each change does to the queries of the collection."""
    try:
        return list(_measured(run))
    except NotMeasurable as error:
        return [run.skipped("surface", error)]


def _measured(run: Run) -> Iterator[Any]:
    collection = collection_of(run, run.settings(SurfaceSettings))
    yield from run(query_surface, run.spec, collection, run.seed)
