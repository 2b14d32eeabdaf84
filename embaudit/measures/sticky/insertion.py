"""Inserts n copies of a token's id into a sentence: I(s2, t, n) of arXiv 2507.18171, on ids.

A *draw* is one (sentence, operator): for all tokens, the resulting sequences have the same length and the copies the
same positions. So a draw's sequences form dense batches without padding or re-tokenising, and positions add no noise to
differences between tokens.

Chooses the sentences on which sticky tokens are measured, and pairs for the steps that need pairs.

The measure itself compares every draw with every anchor (``embaudit.measures.sticky.points``). Pairs spread over a
range of similarities are for the paper's first experiment and for its published code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.words.errors import CorpusError, MeasureError

Operator = Literal["prefix", "suffix", "random"]
OPERATORS: tuple[Operator, ...] = ("prefix", "suffix", "random")


@dataclass(frozen=True)
class SentenceDraw:
    """One sentence with n positions to fill.

    Attributes:
        template: (L,) int64, prompt, special tokens and content, with -1 at the n positions of the copies.
        baseline: the same sentence, cut equally, without the copies; prompt and special tokens included.
    """

    operator: Operator
    template: np.ndarray
    baseline: tuple[int, ...]

    def insert(self, token_ids: np.ndarray) -> np.ndarray:
        """(T, L) int64: the sentence once per token, with that token at the n positions."""
        rows = np.repeat(self.template[None, :], len(token_ids), axis=0)
        rows[:, self.template < 0] = np.asarray(token_ids, dtype=np.int64)[:, None]
        return rows


def make_draw(checkpoint: Checkpoint, sentence: str, operator: Operator, copies: int, seed: int) -> SentenceDraw:
    """Prepare a sentence for insertion; its content is cut so that all copies survive truncation.

    Copies go into the sentence, after the prompt; prompt and sentence are tokenised together, as served.

    Random positions depend only on the seed and the sentence, so a token's value does not depend on the order, sharding
    or subset of tokens.

    Raises:
        MeasureError: if the checkpoint's length limit leaves no room for content.
    """
    room = checkpoint.content_limit - copies
    if room < 1:
        added = "the special tokens and the prompt" if checkpoint.prompt.ids else "the special tokens"
        raise MeasureError(
            f"{copies} copies and {added} leave no room for a sentence in {checkpoint.max_length} tokens.",
            next_step="Give a larger --max-length.",
        )
    content = checkpoint.content_ids(sentence, limit=room)
    gaps = _gaps(operator, len(content), copies, sentence, seed)
    inserted = np.insert(np.asarray(content, dtype=np.int64), gaps, -1)
    template = np.array(checkpoint.with_special_tokens(inserted.tolist()), dtype=np.int64)
    return SentenceDraw(operator, template, tuple(checkpoint.with_special_tokens(content)))


def _gaps(operator: Operator, content_length: int, copies: int, sentence: str, seed: int) -> np.ndarray:
    """The content token before which each copy goes; the gap after the last is ``content_length``."""
    if operator == "prefix":
        return np.zeros(copies, dtype=np.int64)
    if operator == "suffix":
        return np.full(copies, content_length, dtype=np.int64)
    return np.sort(generator_for(sentence, copies, seed).integers(0, content_length + 1, size=copies))


def generator_for(sentence: str, copies: int, seed: int) -> np.random.Generator:
    """A generator that depends only on seed, number of copies and sentence, never on earlier draws."""
    digest = hashlib.sha256(f"{seed}\n{copies}\n{sentence}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


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
