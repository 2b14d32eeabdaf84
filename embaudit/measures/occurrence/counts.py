"""Counts severe tokens in a corpus, individually and relative to the rest of the vocabulary, and finds dense texts.

Counts as ``embaudit.remedies.screening`` does: tokens that the checkpoint reads, without special tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint.tokenizer import truncated
from embaudit.remedies.screening.count import Encode, counts_of, tokenised
from embaudit.remedies.screening.density import MIN_COPIES, MIN_SCORE, OrdinaryRate, is_unusual, log_tail, score


@dataclass(frozen=True)
class SevereText:
    """A text with severe tokens.

    Attributes:
        place: index of the text among the counted ones.
        read: number of tokens read, without special tokens.
        counts: severe tokens, by id.
    """

    place: int
    read: int
    counts: Counter[int]


@dataclass(frozen=True)
class CorpusCounts:
    """Counts of a corpus.

    Attributes:
        histogram: (V,) occurrences of each id of the vocabulary.
        texts: number of texts with at least one token.
    """

    histogram: np.ndarray
    texts: int
    severe_texts: tuple[SevereText, ...]

    @property
    def tokens(self) -> int:
        return int(self.histogram.sum())

    @property
    def severe(self) -> int:
        """Occurrences of severe tokens."""
        return sum(text.counts.total() for text in self.severe_texts)

    def texts_with(self, token_id: int) -> list[SevereText]:
        return [text for text in self.severe_texts if token_id in text.counts]

    def less_frequent(self, token_id: int, among: np.ndarray) -> float:
        """The share of the ids ``among`` that occur less often; ties count half."""
        others = self.histogram[among]
        own = self.histogram[token_id]
        return float(((others < own).sum() + (others == own).sum() / 2) / len(among))


@dataclass(frozen=True)
class DenseText:
    """A text in which severe tokens are dense; ``log_tail`` is relative to the rest of its corpus."""

    text: SevereText
    score: float
    log_tail: float


def count_corpus(
    texts: Iterable[str],
    encode: Encode,
    severe: frozenset[int],
    limit: int,
    vocabulary_size: int,
    side: str = "right",
) -> CorpusCounts:
    """Count every id in a stream of texts, each tokenised once.

    Args:
        limit: tokens per text that the checkpoint reads, without special tokens.
        side: where longer texts are truncated.
    """
    histogram = np.zeros(vocabulary_size, dtype=np.int64)
    found: list[SevereText] = []
    with_tokens = 0
    for place, _, whole in tokenised(enumerate(texts), encode):
        ids = truncated(whole, limit, side)
        np.add.at(histogram, ids, 1)
        with_tokens += bool(ids)
        if not severe.isdisjoint(ids):
            found.append(SevereText(place, len(ids), counts_of(ids, severe)))
    return CorpusCounts(histogram, with_tokens, tuple(found))


def dense_texts(counts: CorpusCounts, losses: Mapping[int, float]) -> list[DenseText]:
    """The texts that ``embaudit screen`` would flag with the rest of the corpus as ordinary text; densest first."""
    found = []
    for text in counts.severe_texts:
        severe, density = text.counts.total(), score(text.counts, losses, text.read)
        rest = counts.tokens - text.read
        if severe < MIN_COPIES or density < MIN_SCORE or not rest:
            continue
        tail = log_tail(severe, text.read, OrdinaryRate(rest, counts.severe - severe).most)
        if is_unusual(tail, counts.texts):
            found.append(DenseText(text, density, tail))
    return sorted(found, key=lambda one: (-one.score, one.text.place))
