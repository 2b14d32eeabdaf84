"""Where n copies of a token stand in a text: fixed and random places, and a search for the worst ones.

A text of L tokens has L + 1 gaps, of which copies take n, with repetition. Gap 0 is before the first token, gap L after
the last; special tokens and prompt are outside. How bad a place is, a set of anchor sentences judges.

Retention's slope over all points (draw k, anchor a) is linear in the vectors after insertion: with x the similarities
before, and ê_k the unit vector of the text with copies,

    slope = Σ_k ê_k·g_k / Σ_{k,a} (x_ka − x̄)²          g_k = Σ_a (x_ka − x̄) a

so the placement with the smallest ê_k·g_k in each text has the smallest slope. A search uses the anchors of g_k; its
result is measured on others (``embaudit.measures.placement.losses``).

- ``best_random``: the worst of several random placements of the whole budget.
- ``greedy``: adds one copy at a time in the gap that makes ê·g smallest; keeps the worst number of copies.
- ``gradient``: the same, but each step encodes only the few gaps where ê·g falls fastest with the weight w_j of a copy
  added with small weight: ∂(ê·g)/∂w_j at small w, for all gaps j at once (``embaudit.checkpoint.encoder``). One
  backward pass replaces L + 1 encodes.

Losses from copies of tokens placed by each strategy.

For token t and strategy m, on sentences that the search for tokens did not use (its validation did) and anchors that
no search for places used,

    loss_m(t) = 1 − slope_m(t) / median of slope_rotation over ordinary tokens

with the slope of ``retention`` (``embaudit.measures.sticky.moments``). All strategies have the same reference, so that
a position where ordinary words do harm, too, counts as worse. Resamples are of draws, groups of anchors and ordinary
tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.encoder import weighted_vectors
from embaudit.measures.placement import GRADIENT_ENCODES, Strategy
from embaudit.measures.sticky.effects import (
    Loss,
    ResampledValues,
    crossed_resamples,
    drawn_controls,
    moments_of,
    paired_losses,
    with_mean,
)
from embaudit.measures.sticky.insertion import SentenceDraw, generator_for
from embaudit.measures.sticky.moments import retention
from embaudit.measures.sticky.points import Points, unit_rows


@dataclass(frozen=True)
class StrategyLosses:
    """Losses of one strategy: each severe token, their mean, and the median ordinary token."""

    tokens: list[Loss]
    severe: Loss
    ordinary: Loss


def placement_losses(
    points: Points,
    by_strategy: Mapping[Strategy, np.ndarray],
    severe: Sequence[int],
    ordinary: Sequence[int],
    resamples: int,
    seed: int,
) -> dict[Strategy, StrategyLosses]:
    """Losses of every strategy, with the change from the first one, which is the reference.

    Args:
        by_strategy: (T, K, d) vectors of T tokens in the K draws.
        severe, ordinary: indices among the T tokens.
    """
    weights = crossed_resamples(points, resamples, seed)
    is_ordinary = np.zeros(len(next(iter(by_strategy.values()))), dtype=bool)
    is_ordinary[list(ordinary)] = True
    drawn = drawn_controls(is_ordinary, resamples, seed)

    def medians(slopes: np.ndarray) -> np.ndarray:
        return np.median(np.take_along_axis(slopes, drawn, axis=1), axis=1, keepdims=True)

    found: dict[Strategy, StrategyLosses] = {}
    first: ResampledValues | None = None
    unit, units = 1.0, np.ones((resamples, 1))
    for strategy, vectors in by_strategy.items():
        moments = moments_of(points, vectors)
        slope, slopes = retention(points, moments).slope[None], retention(points, moments, weights).slope
        middle, middles = np.median(slope[:, is_ordinary], axis=1, keepdims=True), medians(slopes)
        if first is None:
            unit, units = float(middle[0, 0]), middles
        of_all = ResampledValues(
            (1 - np.column_stack([with_mean(slope, severe), middle]) / unit)[0],
            1 - np.column_stack([with_mean(slopes, severe), middles]) / units,
        )
        *tokens, mean, median = paired_losses(of_all, first)
        found[strategy] = StrategyLosses(tokens, mean, median)
        first = first or of_all
    return found


# Sentence-final punctuation in several scripts.
MARKS = (".", "!", "?", "…", "。", "！", "？", "।", "؟", "۔")


@dataclass(frozen=True)
class PlacedText:
    """A text between prompt and special tokens, cut so that all copies survive.

    Attributes:
        ends: (E,) the beginning and the gap after each sentence, ascending.
    """

    head: np.ndarray
    content: np.ndarray
    tail: np.ndarray
    ends: np.ndarray

    @property
    def gaps(self) -> int:
        return len(self.content) + 1

    def filled(self, gaps: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """The text with copies: row i has token i in its gaps.

        Args:
            gaps: (R, n), ascending in each row.
            token_ids: (R,).

        Returns:
            (R, len(head) + L + n + len(tail)) int64.
        """
        rows, n = gaps.shape
        found = np.repeat(token_ids[:, None], len(self.content) + n, axis=1)
        is_copy = np.zeros(found.shape, dtype=bool)
        # A copy comes after the content before its gap, and after earlier copies.
        np.put_along_axis(is_copy, gaps + np.arange(n), True, axis=1)
        found[~is_copy] = np.tile(self.content, rows)
        around = (np.tile(self.head, (rows, 1)), found, np.tile(self.tail, (rows, 1)))
        return np.concatenate(around, axis=1).astype(np.int64)


def text_of(checkpoint: Checkpoint, draw: SentenceDraw) -> PlacedText:
    """The text of a draw."""
    marked = checkpoint.with_special_tokens([-1])
    start, behind = marked.index(-1), len(marked) - 1 - marked.index(-1)
    ids = np.array(draw.baseline, dtype=np.int64)
    content = ids[start : len(ids) - behind]
    words = [checkpoint.tokenizer.decode([token]).strip() for token in content.tolist()]
    ends = {0, len(content), *(place + 1 for place, word in enumerate(words) if word.endswith(MARKS))}
    return PlacedText(ids[:start], content, ids[len(ids) - behind :], np.array(sorted(ends)))


def fixed_places(text: PlacedText, copies: int) -> dict[str, np.ndarray]:
    """Strategy -> (copies,) gaps, the same for every token."""
    last = text.gaps - 1
    dealt = np.linspace(0, len(text.ends) - 1, copies).round().astype(np.int64)
    return {
        "prefix": np.zeros(copies, dtype=np.int64),
        "suffix": np.full(copies, last),
        "interleaved": np.linspace(0, last, copies + 2)[1:-1].round().astype(np.int64),
        "sentence_ends": text.ends[dealt],
    }


def random_places(text: PlacedText, copies: int, tries: int, seed: int) -> np.ndarray:
    """(tries, copies) random gaps that depend only on the seed and the text."""
    generator = generator_for(" ".join(map(str, text.content.tolist())), copies, seed)
    return np.sort(generator.integers(0, text.gaps, size=(tries, copies)), axis=1)


def rotation_places(text: PlacedText, draw: SentenceDraw) -> np.ndarray:
    """(n,) gaps of the copies in a draw of the search for sticky tokens."""
    inside = draw.template[len(text.head) : len(draw.template) - len(text.tail)]
    is_copy = inside < 0
    gaps: np.ndarray = np.cumsum(~is_copy)[is_copy]
    return gaps


# The small weight of a candidate copy.
LITTLE = 0.05


@dataclass(frozen=True)
class Goal:
    """The objective that a search minimises.

    Attributes:
        directions: (K, d) float64, g_k of each text.
        variance: Σ (x − x̄)² over all points.
    """

    directions: np.ndarray
    variance: float

    def slope(self, vectors: np.ndarray) -> np.ndarray:
        """(T, K, d) unit vectors -> (T,) retention's slope on the anchors that the search uses."""
        slopes: np.ndarray = np.einsum("tkd,kd->t", vectors, self.directions, dtype=np.float64) / self.variance
        return slopes


@dataclass(frozen=True)
class Placed:
    """Placements of T tokens in one text.

    Attributes:
        vectors: (T, d) float32, unit vectors.
        gaps: (T, budget) gaps of the copies; −1 for unused copies.
        values: (T,) ê·g.
        encodes: number of encodes per token.
    """

    vectors: np.ndarray
    gaps: np.ndarray
    values: np.ndarray
    encodes: int

    @property
    def copies(self) -> np.ndarray:
        """(T,) number of copies."""
        counts: np.ndarray = (self.gaps >= 0).sum(axis=1)
        return counts


def goal(encoder: Encoder, draws: Sequence[SentenceDraw], anchors: Sequence[str]) -> Goal:
    """The objective, from the similarities between the plain texts and these anchors."""
    rows = unit_rows(encoder.encode_texts(anchors)).astype(np.float64)
    plain = unit_rows(encoder.encode_ids([draw.baseline for draw in draws])).astype(np.float64)
    before = plain @ rows.T
    centred = before - before.mean()
    return Goal(centred @ rows, float(np.square(centred).sum()))


class TextSearch:
    """Searches placements of tokens in one text by ê·g."""

    def __init__(self, encoder: Encoder, text: PlacedText, token_ids: np.ndarray, direction: np.ndarray) -> None:
        self._encoder, self._text, self._tokens, self._direction = encoder, text, token_ids, direction

    def at(self, gaps: np.ndarray) -> Placed:
        """The worst of C placements for each token.

        Args:
            gaps: (T, C, n); or (C, n), the same for every token.
        """
        tokens = len(self._tokens)
        gaps = np.broadcast_to(gaps, (tokens, *gaps.shape[-2:]))
        count, copies = gaps.shape[1:]
        vectors = self._encoded(gaps.reshape(-1, copies), np.repeat(self._tokens, count)).reshape(tokens, count, -1)
        values = vectors @ self._direction
        best = values.argmin(axis=1)
        each = np.arange(tokens)
        return Placed(vectors[each, best], gaps[each, best], values[each, best], count)

    def greedy(self, budget: int) -> Placed:
        """Adds one copy at a time where it is worst; returns the worst number of copies."""
        steps = [self.at(np.arange(self._text.gaps)[:, None])]
        for _ in range(1, budget):
            held = np.repeat(steps[-1].gaps[:, None], self._text.gaps, axis=1)
            each = np.broadcast_to(np.arange(self._text.gaps)[:, None], (*held.shape[:2], 1))
            steps.append(self.at(np.sort(np.concatenate([held, each], axis=2), axis=2)))
        return _best(steps, budget)

    def guided(self, budget: int, tries: int) -> Placed:
        """Like ``greedy``, but each step encodes only the ``tries`` gaps that the gradient proposes."""
        gaps = np.empty((len(self._tokens), 0), dtype=np.int64)
        steps: list[Placed] = []
        for _ in range(budget):
            proposed = np.argsort(self.slopes(gaps), axis=1, kind="stable")[:, :tries, None]
            held = np.repeat(gaps[:, None], proposed.shape[1], axis=1)
            found = self.at(np.sort(np.concatenate([held, proposed], axis=2), axis=2))
            steps.append(replace(found, encodes=found.encodes + GRADIENT_ENCODES))
            gaps = found.gaps
        return _best(steps, budget)

    def slopes(self, gaps: np.ndarray) -> np.ndarray:
        """The gradient of ê·g with respect to the weight of another copy in each gap.

        Args:
            gaps: (T, n) gaps of existing copies.

        Returns:
            (T, L + 1).
        """
        import torch

        text, checkpoint = self._text, self._encoder.checkpoint
        tokens, n = gaps.shape
        # One candidate in each gap, before any existing copies.
        every = np.broadcast_to(np.arange(text.gaps), (tokens, text.gaps))
        ids = text.filled(np.sort(np.concatenate([every, gaps], axis=1), axis=1), self._tokens)
        ordinal = np.arange(text.gaps)
        before = np.stack([np.searchsorted(row, ordinal) for row in gaps]) if n else np.zeros_like(every)
        candidates = len(text.head) + 2 * ordinal + before
        real = np.ones(ids.shape, dtype=np.int64)
        np.put_along_axis(real, candidates, 0, axis=1)
        # A candidate has the position of the next token.
        positions = np.cumsum(real, axis=1) - real
        weights = np.where(real == 1, 1.0, LITTLE).astype(np.float32)
        rows = max(1, self._encoder.tokens_per_batch // ids.shape[1])
        found = []
        for start in range(0, tokens, rows):
            part = slice(start, start + rows)
            own = [torch.from_numpy(one[part]).to(checkpoint.device) for one in (ids, positions, weights)]
            own[2].requires_grad_(True)
            vectors = weighted_vectors(checkpoint, *own)
            direction = torch.from_numpy(self._direction).to(vectors)
            (gradient,) = torch.autograd.grad((vectors @ direction).sum(), own[2])
            self._encoder.texts += len(vectors)
            found.append(np.take_along_axis(gradient.cpu().numpy(), candidates[part], axis=1))
        slopes: np.ndarray = np.concatenate(found)
        return slopes

    def _encoded(self, gaps: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        import torch

        rows = torch.from_numpy(self._text.filled(gaps, token_ids))
        vectors = self._encoder.encode_dense(rows)
        return torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()


def _best(steps: Sequence[Placed], budget: int) -> Placed:
    """For each token, the step with the smallest value; ties go to fewer copies."""
    choice = np.argmin([step.values for step in steps], axis=0)
    padded = [np.pad(step.gaps, ((0, 0), (0, budget - step.gaps.shape[1])), constant_values=-1) for step in steps]
    each = np.arange(len(choice))
    return Placed(
        np.stack([step.vectors for step in steps])[choice, each],
        np.stack(padded)[choice, each],
        np.stack([step.values for step in steps])[choice, each],
        sum(step.encodes for step in steps),
    )
