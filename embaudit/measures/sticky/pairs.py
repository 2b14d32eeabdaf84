"""Chooses the sentences on which sticky tokens are measured, and pairs for the steps that need pairs.

The measure itself compares every draw with every anchor (``embaudit.measures.sticky.points``). Pairs spread over a
range of similarities are for the paper's first experiment and for its published code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.words.errors import CorpusError

MIN_SENTENCES = 8


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and their cosine similarity before any insertion."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True)
class SentenceSet:
    """Sentences that tokens are inserted into, and sentences that the results are compared with."""

    draws: tuple[str, ...]
    anchors: tuple[str, ...]


def distinct_sentences(texts: Sequence[str], limit: int, seed: int) -> list[str]:
    """Up to ``limit`` distinct sentences, sampled by the seed, in a fixed order."""
    distinct = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if len(distinct) <= limit:
        return distinct
    chosen = np.random.default_rng(seed).choice(len(distinct), size=limit, replace=False)
    return [distinct[index] for index in sorted(chosen)]


def split_sentences(
    sentences: Sequence[str], draws: int, validation_draws: int, seed: int
) -> tuple[SentenceSet, SentenceSet]:
    """Split sentences at random between search and validation; none is used twice.

    Sentences not used for draws become anchors, half for each purpose. At least half of all sentences are anchors.

    Args:
        sentences: distinct.

    Raises:
        CorpusError: if there are fewer than eight sentences.
    """
    if len(sentences) < MIN_SENTENCES:
        raise CorpusError(
            f"The sticky-token measure needs at least eight distinct sentences, but the corpus has {len(sentences)}.",
            next_step="Give a larger corpus: --corpus sts=FILE",
        )
    dealt = [sentences[place] for place in np.random.default_rng([seed, 1]).permutation(len(sentences))]
    scoring = min(draws, len(dealt) // 4)
    drawn = scoring + min(validation_draws, len(dealt) // 4)
    middle = drawn + (len(dealt) - drawn) // 2
    return (
        SentenceSet(tuple(dealt[:scoring]), tuple(dealt[drawn:middle])),
        SentenceSet(tuple(dealt[scoring:drawn]), tuple(dealt[middle:])),
    )


def named_pairs(
    sentences: Sequence[str], similarity: np.ndarray, chosen: Sequence[tuple[int, int]]
) -> tuple[SentencePair, ...]:
    """Index pairs as sentences with their similarities."""
    return tuple(SentencePair(sentences[i], sentences[j], float(similarity[i, j])) for i, j in chosen)


def spread_pairs(
    similarity: np.ndarray, low: float, high: float, count: int, generator: np.random.Generator
) -> list[tuple[int, int]]:
    """Pairs whose similarities are spread evenly over [low, high], least similar first; sentences may repeat.

    For each of ``count`` evenly spaced targets, the nearest pair not yet taken; the order within a pair is random.
    Fewer than ``count`` if there are not enough pairs in the range.

    Args:
        similarity: (N, N) cosines of distinct sentences.
    """
    i, j = np.triu_indices(len(similarity), 1)
    inside = np.flatnonzero((similarity[i, j] >= low) & (similarity[i, j] <= high))
    order = inside[np.argsort(similarity[i, j][inside], kind="stable")]
    values = similarity[i, j][order]
    count = min(count, len(values))
    if count == 0:
        return []
    # Targets ascend, and so do the indices: each is greater than the last, and leaves enough for the remaining targets.
    places, last = [], -1
    for index, target in enumerate(np.linspace(low, high, count)):
        right = int(np.searchsorted(values, target))
        nearest = (
            right
            if right == 0 or (right < len(values) and values[right] - target < target - values[right - 1])
            else right - 1
        )
        last = min(max(nearest, last + 1), len(values) - (count - index))
        places.append(last)
    swapped = generator.random(count) < 0.5
    return [
        (int(j[order[place]]), int(i[order[place]])) if swap else (int(i[order[place]]), int(j[order[place]]))
        for place, swap in zip(places, swapped, strict=True)
    ]
