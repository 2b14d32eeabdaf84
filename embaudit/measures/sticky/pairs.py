"""Which sentence pairs a sticky-token audit is measured on.

``balanced_pairs`` spreads pairs evenly over the whole range of similarities and lets no sentence occur twice,
so that a pair's value is independent of another's. The paper takes pairs below u only; on those, anything that
perturbs a sentence looks like pull.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.errors import CorpusError


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and their cosine similarity under the checkpoint, before any insertion."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True)
class PairSample:
    """Pairs for scoring and pairs for validation; no sentence stands in both, or twice in one."""

    scoring: tuple[SentencePair, ...]
    validation: tuple[SentencePair, ...]
    scoring_wanted: int
    validation_wanted: int


def distinct_sentences(texts: Sequence[str], limit: int, seed: int) -> list[str]:
    """Up to ``limit`` distinct sentences, drawn by the seed, in a fixed order."""
    distinct = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if len(distinct) <= limit:
        return distinct
    chosen = np.random.default_rng(seed).choice(len(distinct), size=limit, replace=False)
    return [distinct[index] for index in sorted(chosen)]


def sample_pairs(sentences: Sequence[str], vectors: np.ndarray, scoring: int, validation: int, seed: int) -> PairSample:
    """Choose scoring pairs far apart from each other, then validation pairs from the sentences that are left.

    Args:
        sentences: N distinct sentences.
        vectors: (N, D) float32, their embeddings.
        scoring, validation: how many pairs are wanted; fewer come back where sentences run out.

    Raises:
        CorpusError: with fewer than eight sentences there is nothing to spread.
    """
    if len(sentences) < 8:
        raise CorpusError(
            f"The sticky-token measure needs at least eight distinct sentences, and the corpus has {len(sentences)}.",
            next_step="Give a larger corpus: --corpus sts=FILE",
        )
    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    similarity = unit @ unit.T
    generator = np.random.default_rng(seed)
    free = np.ones(len(sentences), dtype=bool)
    # Both sets must find sentences: with few, scoring takes at most a quarter of them.
    scoring_pairs = balanced_pairs(similarity, min(scoring, len(sentences) // 8), free, generator, spread=True)
    validation_pairs = balanced_pairs(similarity, validation, free, generator)

    named = [named_pairs(sentences, similarity, chosen) for chosen in (scoring_pairs, validation_pairs)]
    return PairSample(named[0], named[1], scoring, validation)


def named_pairs(
    sentences: Sequence[str], similarity: np.ndarray, chosen: Sequence[tuple[int, int]]
) -> tuple[SentencePair, ...]:
    """Sentences and similarities of index pairs."""
    return tuple(SentencePair(sentences[i], sentences[j], float(similarity[i, j])) for i, j in chosen)


def balanced_pairs(
    similarity: np.ndarray,
    count: int,
    free: np.ndarray,
    generator: np.random.Generator,
    *,
    spread: bool = False,
) -> list[tuple[int, int]]:
    """Disjoint pairs whose similarities are spread evenly between the lowest and the highest, most similar first.

    For each of ``count`` evenly spaced targets, from the scarce high end down, the pair of free sentences
    nearest to the target is taken, if it lies within one step of it; a random one of the near pairs, or, with
    ``spread``, the one whose first sentence is farthest from those already chosen, so that no topic repeats.

    Args:
        similarity: (N, N) cosines.
        free: (N,) bool, sentences that may be used; the chosen ones are cleared in place.
    """
    count = min(count, int(free.sum()) // 2)
    if count == 0:
        return []
    i, j = np.triu_indices(len(similarity), 1)
    # The order within a pair is drawn too: corpora often put the longer or the edited sentence second.
    swap = generator.random(len(i)) < 0.5
    i, j = np.where(swap, j, i), np.where(swap, i, j)
    order = np.argsort(similarity[i, j], kind="stable")
    i, j = i[order], j[order]
    values = similarity[i, j]
    usable = free[i] & free[j]
    low, high = float(values[usable].min()), float(values[usable].max())
    step = (high - low) / max(count - 1, 1)
    chosen: list[tuple[int, int]] = []
    for target in np.linspace(high, low, count):
        start, stop = np.searchsorted(values, [target - step / 2, target + step / 2])
        near = np.arange(start, stop)
        near = near[free[i[near]] & free[j[near]]]
        if len(near) == 0:
            start, stop = np.searchsorted(values, [target - step, target + step])
            near = np.arange(start, stop)
            near = near[free[i[near]] & free[j[near]]]
        if len(near) == 0:
            continue
        if spread and chosen:
            nearest = similarity[np.ix_(i[near], [first for first, _ in chosen])].max(axis=1)
            pick = int(near[np.argmin(nearest)])
        else:
            pick = int(generator.choice(near))
        free[[i[pick], j[pick]]] = False
        chosen.append((int(i[pick]), int(j[pick])))
    return chosen


def spread_pairs(
    similarity: np.ndarray, low: float, high: float, count: int, generator: np.random.Generator
) -> list[tuple[int, int]]:
    """Pairs whose similarities are spread evenly over [low, high], least similar first; sentences may repeat.

    For each of ``count`` evenly spaced targets the nearest pair that is not taken yet; the order within a pair is
    drawn. Fewer than ``count`` where there are no more pairs in the range.

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
    # Targets ascend, and so do the places: each pair lies behind the one before, and leaves room for those to come.
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
