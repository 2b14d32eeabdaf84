"""Severe tokens in the texts of a corpus: counts, dense texts, and what moves when they are removed.

Counts as ``embaudit.remedies.screening`` does: tokens that the checkpoint reads, without special tokens.

For a text x, the text without its severe tokens x⁻, without as many other tokens x°, and anchors a (other texts of the
corpus):

    shift   mean over a of cos(x⁻, a) − cos(x, a): above 0 where the tokens kept the text away from the others
    moved   mean over a of |cos(x⁻, a) − cos(x, a)|
    excess  moved − the same for x°, since removing anything moves a text

All are paired within the text; intervals are Student's t over texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.tokenizer import truncated
from embaudit.measures.length.spans import unit_vectors
from embaudit.remedies.screening.density import (
    MIN_COPIES,
    MIN_SCORE,
    Encode,
    OrdinaryRate,
    counts_of,
    is_unusual,
    log_tail,
    score,
    tokenised,
)
from embaudit.statistics import mean_with_interval


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


# The group in which all severe tokens are removed at once.
ALL = -1


@dataclass(frozen=True)
class Removal:
    """A text's ids, without special tokens: all of them, without the severe ones, and without as many others.

    Attributes:
        place: index of the text among those that anchors are chosen from.
    """

    place: int
    whole: list[int]
    without: list[int]
    control: list[int]


@dataclass(frozen=True)
class Movement:
    """Changes of similarities, (n,) for n texts each."""

    shift: np.ndarray
    moved: np.ndarray
    ordinary: np.ndarray

    def columns(self) -> dict[str, float | int | None]:
        """Means with their intervals, by column name."""
        found: dict[str, float | int | None] = {"removal_texts": len(self.moved)}
        for name, values in (("shift", self.shift), ("moved", self.moved), ("excess", self.moved - self.ordinary)):
            found |= mean_with_interval(values).columns(name)
        return {**found, "ordinary_moved": float(self.ordinary.mean()) if len(self.ordinary) else None}


def take_out(place: int, ids: Sequence[int], severe: Collection[int], seed: int) -> Removal | None:
    """A text without its severe tokens; None unless it has more other tokens than severe ones.

    Args:
        ids: the ids that the checkpoint reads, without special tokens.
        seed: chooses, with ``place``, the other tokens to remove instead.
    """
    hits = [token_id in severe for token_id in ids]
    others = [at for at, is_hit in enumerate(hits) if not is_hit]
    amount = len(ids) - len(others)
    if not amount or len(others) <= amount:
        return None
    drawn = set(np.random.default_rng([seed, place]).choice(others, size=amount, replace=False).tolist())
    return Removal(
        place,
        list(ids),
        [ids[at] for at in others],
        [token_id for at, token_id in enumerate(ids) if at not in drawn],
    )


def plan_removals(
    counts: CorpusCounts,
    token_ids: Iterable[int],
    order: Sequence[int],
    own_ids: Callable[[Sequence[int]], list[list[int]]],
    most: int,
    seed: int,
) -> Mapping[int, list[Removal]]:
    """What to remove from which texts: for ``ALL`` all severe tokens of a text, for an id that token only.

    Args:
        order: indices of the texts; the first ``most`` that contain a token are used.
        own_ids: returns the ids of texts by index, without special tokens, as far as the checkpoint reads them.
    """
    wanted = {token_id: frozenset((token_id,)) for token_id in token_ids}
    wanted[ALL] = frozenset(wanted)
    rank = {place: at for at, place in enumerate(order)}
    planned = {}
    for group, tokens in wanted.items():
        holding = (text.place for text in counts.severe_texts if not tokens.isdisjoint(text.counts))
        places = sorted(holding, key=lambda place: rank[place])[:most]
        taken = (take_out(place, ids, tokens, seed) for place, ids in zip(places, own_ids(places), strict=True))
        planned[group] = [one for one in taken if one is not None]
    return planned


def measure_removals(
    encoder: Encoder, planned: Mapping[int, Sequence[Removal]], anchors: Sequence[tuple[int, list[int]]]
) -> Mapping[int, Movement]:
    """Encode texts in their three forms and compare them with the anchors; returns the changes for each group.

    Args:
        anchors: (index, ids) of texts. A text is not compared with itself, so at least two are needed.
    """
    removals = [one for group in planned.values() for one in group] if len(anchors) > 1 else []
    if not removals:
        return dict.fromkeys(planned, Movement(*(np.empty(0) for _ in range(3))))
    forms = [ids for one in removals for ids in (one.whole, one.without, one.control)]
    around = encoder.checkpoint.with_special_tokens
    units = unit_vectors(encoder.encode_ids([around(ids) for ids in (*forms, *(ids for _, ids in anchors))]))
    # (texts, forms, anchors)
    cosines = (units[: len(forms)] @ units[len(forms) :].T).reshape(len(removals), 3, -1)
    is_other = np.array([[place != one.place for place, _ in anchors] for one in removals])

    def mean(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.where(is_other, values, 0).sum(axis=1) / is_other.sum(axis=1))

    change, control = (cosines[:, form] - cosines[:, 0] for form in (1, 2))
    columns = (mean(change), mean(np.abs(change)), mean(np.abs(control)))
    ends = np.cumsum([len(group) for group in planned.values()])
    starts = (0, *ends[:-1])
    return {
        group: Movement(*(values[start:end] for values in columns))
        for group, start, end in zip(planned, starts, ends, strict=True)
    }
