"""Mines hard negatives: for each query, the top-ranked passages not judged relevant, by BM25 or by vectors.

Ties go to the first passage, so results are deterministic. Used by ``embaudit_tasks.mining``; BM25 needs bm25s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from embaudit.words.errors import MeasureError

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
