"""Hard negatives: mined for queries, and listed pairs compared with random pairs of the same texts.

Mining finds, for each query, the top-ranked passages not judged relevant, by BM25 or by vectors. Ties go to the first
passage, so results are deterministic. Used by ``embaudit_tasks.corpora``; BM25 needs bm25s.

For the comparison, a paired difference, every query is paired with its own passage, and with another query's. The
latter are a permutation of the former, so both arms have the same queries and passages: lengths and tr Σ are the same,
only the pairing differs.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.measures.socm.clouds import TokenCloud
from embaudit.measures.socm.pairs import given_pairs
from embaudit.measures.socm.summary import jackknife_of_pairs
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate

DISTANCES = ("socm", "d_mu", "d_sigma")


@dataclass(frozen=True)
class Contrast:
    """One distance, averaged over the listed and over the random pairs.

    Attributes:
        difference: listed − random; its interval is a jackknife over queries.
    """

    distance: str
    pairs: int
    queries: int
    listed_mean: float
    random_mean: float
    difference: float
    difference_low: float | None
    difference_high: float | None


def strangers(queries: Sequence[Hashable]) -> list[int] | None:
    """For each pair, the index of another query's pair, each index once; None if one query has over half of the pairs.

    Pairs are grouped by query and shifted by the size of the largest group. The given order of queries should be
    random.
    """
    rows: dict[Hashable, list[int]] = {}
    for place, query in enumerate(queries):
        rows.setdefault(query, []).append(place)
    shift = max(map(len, rows.values()), default=0)
    if not rows or 2 * shift > len(queries):
        return None
    ordered = [place for row in rows.values() for place in row]
    partner = [0] * len(queries)
    for k, place in enumerate(ordered):
        partner[place] = ordered[(k + shift) % len(ordered)]
    return partner


def contrasts(
    clouds: Mapping[int, TokenCloud], first: Sequence[int], second: Sequence[int], partner: Sequence[int]
) -> list[Contrast]:
    """SOCM, d_μ and d_Σ of the pairs (first, second), compared with (first, second of the partner).

    Args:
        clouds: by text number.
        first, second: (k,) numbers of queries and passages.
        partner: (k,) indices of other pairs (``strangers``).
    """
    listed = given_pairs(clouds, first, second)
    random = given_pairs(clouds, first, [second[place] for place in partner])
    _, places = np.unique(np.asarray(first), return_inverse=True)
    counts = np.bincount(places)
    found = []
    for name in DISTANCES:
        own, other = getattr(listed, name), getattr(random, name)
        change = own - other
        mean = float(change.mean())
        _, low, high = Estimate.around(
            mean, jackknife_of_pairs(np.bincount(places, weights=change), counts, float(change.sum()), len(change))
        )
        found.append(
            Contrast(
                distance=name,
                pairs=len(change),
                queries=len(counts),
                listed_mean=float(own.mean()),
                random_mean=float(other.mean()),
                difference=mean,
                difference_low=low,
                difference_high=high,
            )
        )
    return found


# Scores per step of ``by_cosine``: 64 MB.
SCORES_PER_STEP = 8_000_000


def by_bm25(
    queries: Sequence[str], passages: Sequence[str], relevant: Sequence[Collection[int]], count: int = 1
) -> list[list[int]]:
    """The top passages for each query under BM25 (Lucene's variant, without English stop words).

    Args:
        relevant: for each query, the indices of passages judged relevant, which are never returned.
        count: passages per query.

    Returns:
        For each query, indices into passages, best first; fewer than ``count`` if passages run out.

    Raises:
        MeasureError: if no passage has a word that BM25 indexes.
    """
    import bm25s

    indexed = bm25s.tokenize(list(passages), stopwords="en", return_ids=False, show_progress=False)
    if not any(indexed):
        raise MeasureError(
            f"BM25 finds no word in the {len(passages)} passages.",
            next_step="Give passages in a language with words between spaces, or mine by the checkpoint.",
        )
    retriever = bm25s.BM25()
    retriever.index(indexed, show_progress=False)
    asked = bm25s.tokenize(list(queries), stopwords="en", return_ids=False, show_progress=False)
    known = retriever.vocab_dict

    def scores() -> Iterator[np.ndarray]:
        for words in asked:
            # bm25s cannot score a query without known words, which matches nothing.
            found = [word for word in words if word in known]
            yield retriever.get_scores(found) if found else np.zeros(len(passages), dtype=np.float32)

    return [_best(row, judged, count) for row, judged in zip(scores(), relevant, strict=True)]


def by_cosine(
    queries: np.ndarray, passages: np.ndarray, relevant: Sequence[Collection[int]], count: int = 1
) -> list[list[int]]:
    """The nearest passages for each query by cosine, for unit vectors (Q, D) and (P, D); arguments as ``by_bm25``."""
    found: list[list[int]] = []
    step = max(1, SCORES_PER_STEP // max(len(passages), 1))
    for start in range(0, len(queries), step):
        scores = queries[start : start + step].astype(np.float64) @ passages.T.astype(np.float64)
        found += [_best(row, judged, count) for row, judged in zip(scores, relevant[start : start + step], strict=True)]
    return found


def _best(scores: np.ndarray, judged: Collection[int], count: int) -> list[int]:
    # The requested passages are among the top ``count`` plus the number of judged ones.
    front = min(len(scores), count + len(judged))
    if front == 0:
        return []
    cut = np.partition(scores, len(scores) - front)[len(scores) - front]
    candidates = np.flatnonzero(scores >= cut)
    best = candidates[np.argsort(-scores[candidates], kind="stable")]
    return [int(index) for index in best if int(index) not in judged][:count]
