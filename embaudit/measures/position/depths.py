"""Documents with evidence at a depth, on token ids, and what the evidence gains there; no checkpoint.

Two queries share their documents: each one's evidence is the other's control, which halves what is encoded. The two
are therefore one unit in intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.draw import content_order
from embaudit.measures.collection import RESAMPLES, best_of
from embaudit.measures.quality.material import Collection
from embaudit.statistics import mean_interval, score_share
from embaudit.system.installed import content_key
from embaudit.words.estimate import Estimate

# Evidence that fills more of a document would be at several depths at once.
MOST_EVIDENCE = 3
# Half of the gain at the start.
HALF = 0.5
# Gains and changes below this are rounding of float32 vectors.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Duel:
    """Two queries, the evidence of each (as many tokens), and filler that is relevant to neither.

    Attributes:
        queries: their places in the collection.
    """

    queries: tuple[int, int]
    evidence: tuple[tuple[int, ...], tuple[int, ...]]
    filler: tuple[int, ...]

    @property
    def length(self) -> int:
        """Tokens of the evidence."""
        return len(self.evidence[0])

    def before(self, depth: float) -> int:
        """Tokens of filler before the evidence."""
        return round(depth * len(self.filler))

    def document(self, side: int, depth: float) -> list[int]:
        """The filler with one side's evidence at a depth."""
        before = self.before(depth)
        return [*self.filler[:before], *self.evidence[side], *self.filler[before:]]


@dataclass(frozen=True)
class Drawn:
    """The duels, and how many queries have none.

    Attributes:
        unwritten: their evidence is mostly unknown tokens, or none.
        left_out: nobody is left to share a document with, their filler is too short, or both evidences are the same.
    """

    duels: list[Duel]
    unwritten: int
    left_out: int


def draw_duels(
    collection: Collection,
    evidence: Mapping[int, Sequence[int]],
    documents: Sequence[Sequence[int]],
    tokens: int,
    most: int,
    seed: int,
) -> Drawn:
    """Pairs of queries without a common relevant document, with evidence of about the same length.

    Args:
        evidence: ids of the evidence by document; documents that the tokenizer cannot write are missing.
        documents: all ids of each document.
        tokens: length of the documents to make.
        most: number of queries.
        seed: with the queries' texts it determines which are drawn, and the filler.
    """
    # Queries that share a relevant document are one unit: only one of them is drawn.
    first: dict[int, int] = {}
    for query in content_order(collection.queries, seed):
        first.setdefault(int(collection.units[query]), query)
    drawn = list(first.values())[:most]
    known = [query for query in drawn if best_of(collection.relevant[query]) in evidence]
    # Neighbours by length lose least when both are cut to the shorter one.
    known.sort(key=lambda query: len(evidence[best_of(collection.relevant[query])]))
    duels = [
        duel
        for pair in zip(known[::2], known[1::2], strict=False)
        if (duel := _duel(pair, collection, evidence, documents, tokens, seed)) is not None
    ]
    return Drawn(duels, len(drawn) - len(known), len(known) - 2 * len(duels))


def _duel(
    pair: tuple[int, int],
    collection: Collection,
    evidence: Mapping[int, Sequence[int]],
    documents: Sequence[Sequence[int]],
    tokens: int,
    seed: int,
) -> Duel | None:
    best = [best_of(collection.relevant[query]) for query in pair]
    one, other = (tuple(evidence[place]) for place in best)
    length = min(len(one), len(other))
    themselves = {place for query in pair if collection.own for place in collection.own[query]}
    # A document that is the other query itself would be found by more than its evidence.
    if one[:length] == other[:length] or themselves & {*best}:
        return None
    known = themselves.union(*(collection.relevant[query] for query in pair))
    texts = [collection.queries[query] for query in pair]
    generator = np.random.default_rng(int(content_key(seed=seed, texts=texts), 16))
    filler: list[int] = []
    for place in generator.permutation(len(documents)).tolist():
        filler += documents[place] if place not in known else []
        if len(filler) >= tokens - length:
            return Duel(pair, (one[:length], other[:length]), tuple(filler[: tokens - length]))
    return None


@dataclass(frozen=True)
class Gains:
    """What evidence gains at one depth, over queries."""

    score: float
    gains: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, similarities: np.ndarray) -> Gains:
        """From (duels, 2, 2) similarities of each query of a duel to the document with each evidence."""
        own = np.einsum("pii->pi", similarities)
        other = np.stack([similarities[:, 0, 1], similarities[:, 1, 0]], axis=1)
        gains = own - other
        gains[np.abs(gains) < ROUNDING] = 0.0
        return cls(float(own.mean()), gains.ravel(), np.repeat(np.arange(len(similarities)), 2))

    @property
    def mean(self) -> Estimate:
        return self._mean(self.gains)

    def change(self, start: Gains) -> Estimate:
        """The paired change from the start."""
        change = self.gains - start.gains
        change[np.abs(change) < ROUNDING] = 0.0
        return self._mean(change)

    def _mean(self, values: np.ndarray) -> Estimate:
        return Estimate.holding(float(values.mean()), mean_interval(values, self.units, RESAMPLES, 0))

    def kept(self, start: Gains) -> float | None:
        """The share of the gain at the start; None if that may be 0."""
        return self.mean.known / start.mean.known if start.mean.is_above_zero else None

    @property
    def won(self) -> Estimate:
        """Share of queries with a gain, ties half, with Wilson's interval; none below ten queries."""
        hits = float((self.gains > 0).sum() + 0.5 * (self.gains == 0).sum())
        count = len(self.gains)
        share = hits / count
        return Estimate.holding(share, score_share(round(hits), count) if count >= 10 else None)


def is_lost(gain_low: float | None, kept: float | None) -> bool:
    """Whether evidence counts for nothing or for less than half of that at the start; False if it is not known."""
    return (gain_low is not None and gain_low <= 0) or (kept is not None and kept < HALF)
